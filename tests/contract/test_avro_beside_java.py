"""Avro schemas that change: a record is read as Avro's own Java library, which Spark ships, resolves it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hypothesis import event, given, note
from hypothesis import strategies as st
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from tests.unit.test_decode_avro import decoded, physical, written

pytestmark = pytest.mark.contract

# Java reads a record in a union as a record of another name that has its fields. By the specification it does not fit.
HAS_ANOTHER_NAME = re.compile(r"found (n\w+), expected one of (?!.*\b\1\b)")
# What a reader's type may be for a writer's. Not bytes as string: there Java replaces what is no UTF-8.
PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
}
ADDED: list[tuple[Any, Any]] = [
    ("int", 7),
    ("string", "é"),
    ("bytes", "\u00ff\u0000"),
    ("double", 1),
    (["null", "string"], None),
    (["string", "null"], "x"),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": ["int", "null"]}, {"a": 1}),
    ({"type": "enum", "name": "added_enum", "symbols": ["A", "B"]}, "B"),
    ({"type": "record", "name": "added_record", "fields": [{"name": "a", "type": "int", "default": 3}]}, {}),
]


@st.composite
def evolved(draw: st.DrawFn, schema: Any, depth: int = 4) -> Any:
    """A later version of a schema, most of which can read what the first has written."""
    change = draw(st.integers(0, 9)) if depth else 9
    if isinstance(schema, list):
        branches = [draw(evolved_branch(branch, depth)) for branch in schema]
        if change == 0 and len(branches) > 1:
            branches.pop(draw(st.integers(0, len(branches) - 1)))
        if change == 1:
            branches = draw(st.permutations(branches))
        if change == 2:
            return branches[0]
        if change == 3 and "string" not in branches:
            branches = [*branches, "string"]
        return branches
    later = draw(evolved_branch(schema, depth))
    if change == 0:
        other_types = [other for other in ("null", "double", "string", "bytes") if other != kind_of(later)]
        return draw(st.permutations([later, *other_types[: draw(st.integers(1, len(other_types)))]]))
    return later


def kind_of(schema: Any) -> Any:
    return schema["type"] if isinstance(schema, dict) else schema


@st.composite
def evolved_branch(draw: st.DrawFn, schema: Any, depth: int) -> Any:
    kind = kind_of(schema)
    if not isinstance(schema, dict) or "logicalType" in schema:
        if kind in PROMOTED and draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(PROMOTED[kind]))
        if kind == "fixed":  # is named, and has a size
            plain = {name: value for name, value in schema.items() if name in ("type", "name", "size")}
        else:
            plain = kind
        return plain if draw(st.integers(0, 5)) == 0 else schema
    if kind == "array":
        return {**schema, "items": draw(evolved(schema["items"], depth - 1))}
    if kind == "map":
        return {**schema, "values": draw(evolved(schema["values"], depth - 1))}
    if kind == "enum":
        symbols = draw(st.sampled_from([["a", "b"], ["b", "a", "c"], ["a"], ["c", "b"]]))
        return {**schema, "symbols": symbols, **({"default": symbols[0]} if draw(st.booleans()) else {})}
    if kind == "record":
        fields = [{**field, "type": draw(evolved(field["type"], depth - 1))} for field in schema["fields"]]
        change = draw(st.integers(0, 5))
        if change == 0 and fields:
            fields.pop(draw(st.integers(0, len(fields) - 1)))
        if change == 1 and fields:
            place = draw(st.integers(0, len(fields) - 1))
            fields[place] = {**fields[place], "name": "renamed", "aliases": [fields[place]["name"]]}
        if change == 2:
            avro, value = draw(st.sampled_from(ADDED))
            if not (isinstance(avro, dict) and "name" in avro and "added" in str(fields)):
                fields.insert(draw(st.integers(0, len(fields))), {"name": "new", "type": avro, "default": value})
        return {**schema, "fields": draw(st.permutations(fields)) if change == 3 else fields}
    return schema


class JavaAvro:
    """Avro's Java library in a process of its own."""

    def __init__(self) -> None:
        home = Path(pyspark.__file__).parent
        jars = os.pathsep.join(map(str, (home / "jars").glob("*.jar")))
        self.gateway = JavaGateway.launch_gateway(classpath=jars, die_on_exit=True)
        self.avro = self.gateway.jvm.org.apache.avro

    def parse(self, schema: Any) -> Any:
        """Put the schema into a record, whose bytes are those of its field.

        py4j would make a number of Python of a long, and an int of that.
        """
        boxed = {"type": "record", "name": "boxed", "fields": [{"name": "v", "type": schema}]}
        return self.avro.Schema.Parser().parse(json.dumps(boxed))

    def resolved(self, row: bytes, writer: Any, reader: Any) -> bytes | str:
        """Return the record as the reader's schema writes it, or why it cannot be read."""
        written_as, read_as = self.parse(writer), self.parse(reader)
        factory = self.avro.io.DecoderFactory.get()
        try:
            read = self.avro.generic.GenericDatumReader(written_as, read_as)
            datum = read.read(None, factory.binaryDecoder(bytearray(row), None))
        except Py4JJavaError as error:
            return str(error.java_exception)
        out = self.gateway.jvm.java.io.ByteArrayOutputStream()
        encoder = self.avro.io.EncoderFactory.get().binaryEncoder(out, None)
        self.avro.generic.GenericDatumWriter(read_as).write(datum, encoder)
        encoder.flush()
        return bytes(out.toByteArray())


def in_order(value: Any) -> Any:
    """The value with its maps in the order of their keys: Java's have none."""
    if isinstance(value, dict):
        return {key: in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return sorted(items, key=repr) if items and isinstance(items[0], tuple) else items
    return (value[0], in_order(value[1])) if isinstance(value, tuple) else value


@pytest.fixture(scope="module")
def java() -> Iterator[JavaAvro]:
    peer = JavaAvro()
    yield peer
    peer.gateway.shutdown()


@given(written(), st.data())
def test_a_record_is_read_as_java_reads_it(java: JavaAvro, case: tuple[Any, list[bytes], list[Any]], data: Any) -> None:
    writer, rows, _ = case
    reader = data.draw(evolved(writer))
    note(f"reader: {reader}")
    column, reasons = decoded(reader, list(rows), writer)
    for row, (encoded, mine) in enumerate(zip(rows, physical(column), strict=True)):
        by_java = java.resolved(encoded, writer, reader)
        event("refused by Java" if isinstance(by_java, str) else "read by Java")
        if isinstance(by_java, str) or HAS_ANOTHER_NAME.search(reasons.get(row, "")):
            continue
        assert row not in reasons, by_java
        [expected] = physical(decoded(reader, [by_java])[0])
        assert repr(in_order(mine)) == repr(in_order(expected))


def test_a_record_in_a_union_is_not_read_as_one_of_another_name_as_java_reads_it(java: JavaAvro) -> None:
    created, deleted = ({"type": "record", "name": f"n{n}", "fields": [{"name": "id", "type": "int"}]} for n in "12")
    by_java = java.resolved(b"\x02\x0e", [created, deleted], [created])
    assert by_java == b"\x00\x0e"
    _, reasons = decoded([created], [b"\x02\x0e"], [created, deleted])
    assert HAS_ANOTHER_NAME.search(reasons[0])

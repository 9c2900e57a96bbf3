"""Avro: what fastavro wrote, and what is no Avro at all, read with schemas that change."""

import io
import json
import struct
from decimal import Decimal
from typing import Any
from unittest import mock
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.avro import nested
from kafka_archiver.records.decode import avro as decoding
from kafka_archiver.records.decode.avro import make
from kafka_archiver.records.decode.base import DecoderInput

pytestmark = pytest.mark.unit

INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(width=32, allow_nan=False)
# Type, values as fastavro writes them, and what they are in the column.
LEAVES: list[tuple[Any, st.SearchStrategy[Any], Any]] = [
    ("boolean", st.booleans(), None),
    ("int", INT, None),
    ("long", LONG, None),
    ("float", FLOAT, None),
    ("double", st.floats(allow_nan=False), None),
    ("bytes", st.binary(), None),
    ("string", st.text(), None),
    ({"type": "long", "logicalType": "timestamp-millis"}, LONG, None),
    ({"type": "long", "logicalType": "timestamp-micros"}, LONG, None),
    ({"type": "long", "logicalType": "timestamp-nanos"}, LONG, None),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, LONG, None),
    ({"type": "long", "logicalType": "local-timestamp-nanos"}, LONG, None),
    ({"type": "int", "logicalType": "date"}, INT, None),
    ({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_400_000_000 - 1), None),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str), lambda text: UUID(text).bytes),
    *[
        (
            {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": scale},
            st.integers(1 - 10**digits, 10**digits - 1).map(lambda n: n.to_bytes(n.bit_length() // 8 + 1, signed=True)),
            lambda b, scale=scale: Decimal(f"{int.from_bytes(b, signed=True)}e-{scale}"),
        )
        for digits, scale in [(4, 2), (18, 0), (19, 3), (20, 1), (28, 28), (38, 2), (60, 10)]
    ],
]
# Size, logical type, values, and what they are in the column.
FIXED: list[tuple[int, dict[str, Any], st.SearchStrategy[bytes], Any]] = [
    (3, {}, st.binary(min_size=3, max_size=3), None),
    (12, {"logicalType": "duration"}, st.binary(min_size=12, max_size=12), None),
    (16, {"logicalType": "uuid"}, st.binary(min_size=16, max_size=16), None),
    (
        3,
        {"logicalType": "decimal", "precision": 6, "scale": 2},
        st.integers(-999_999, 999_999).map(lambda n: n.to_bytes(3, signed=True)),
        lambda b: Decimal(int.from_bytes(b, signed=True)).scaleb(-2),
    ),
]


@st.composite
def pairs(draw: st.DrawFn, names: list[int], depth: int = 3) -> tuple[Any, st.SearchStrategy[tuple[Any, Any]]]:
    """A type, and values of it: as fastavro writes one, and as the column has it (timestamps as numbers)."""
    kinds = ["leaf"] * 3 + ["enum", "fixed"] + ["array", "map", "record", "optional", "union"] * (depth > 0)
    kind = draw(st.sampled_from(kinds))
    names.append(len(names))
    name = f"n{len(names)}"
    if kind == "leaf":
        leaf, values, expected = draw(st.sampled_from(LEAVES))
        return leaf, values.map(lambda v: (v, expected(v) if expected else v))
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["a", "b"]}, st.sampled_from("ab").map(lambda v: (v, v))
    if kind == "fixed":
        size, more, octets, expected = draw(st.sampled_from(FIXED))
        kind_of_fixed = {"type": "fixed", "name": name, "size": size, **more}
        return kind_of_fixed, octets.map(lambda v: (v, expected(v) if expected else v))
    parts = [
        draw(pairs(names, depth - 1))
        for _ in range(1 if kind in ("array", "map", "optional") else draw(st.integers(1, 4)))
    ]
    [(first, firsts), *_] = parts
    if kind == "array":
        lists = st.lists(firsts, max_size=5).map(lambda v: tuple(map(list, zip(*v, strict=True))) or ([], []))
        return {"type": "array", "items": first}, lists
    if kind == "map":
        maps = st.dictionaries(st.text(max_size=3), firsts, max_size=4)
        return {"type": "map", "values": first}, maps.map(
            lambda v: ({k: x for k, (x, _) in v.items()}, [(k, y) for k, (_, y) in v.items()])
        )
    if kind == "record":
        # Items of arrays without any bytes are refused: there may be 2^63 of them.
        parts.append(("null", st.none().map(lambda _: (None, None))))
        fields = [{"name": f"f{i}", "type": part} for i, (part, _) in enumerate(parts)]
        values = st.tuples(*(v for _, v in parts)).map(
            lambda v: tuple({f"f{i}": x[side] for i, x in enumerate(v)} for side in (0, 1))
        )
        return {"type": "record", "name": name, "fields": fields}, values
    if kind == "optional":
        if isinstance(first, list):
            return first, firsts
        return [first, "null"], st.none().map(lambda _: (None, None)) | firsts
    # Branches that are records of one field: their wire is that field's, and fastavro's choice is told by the name.
    boxes = [
        {"type": "record", "name": f"{name}b{i}", "fields": [{"name": "v", "type": part}]}
        for i, (part, _) in enumerate(parts)
    ]
    boxes += [{"type": "record", "name": f"{name}bx", "fields": []}]
    choices = [
        v.map(
            lambda v, i=i: (
                (f"{name}b{i}", {"v": v[0]}),
                {f"{name}b{k}": {"v": v[1]} if k == i else None for k in range(len(parts))} | {f"{name}bx": None},
            )
        )
        for i, (_, v) in enumerate(parts)
    ]
    return ["null", *boxes], st.none().map(lambda _: (None, None)) | st.one_of(choices)


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, list[bytes], list[Any]]:
    """A schema, records of it as fastavro writes them, and as the column has them."""
    schema, values = draw(pairs([]))
    drawn = draw(st.lists(values, min_size=1, max_size=6))
    return schema, [encode(schema, value) for value, _ in drawn], [expected for _, expected in drawn]


def encode(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def avro(schema: Any, *references: Reference) -> Schema:
    return Schema(kind="AVRO", text=json.dumps(schema), references=references)


def physical(column: pa.Array) -> list[Any]:
    """Python values, with the numbers of dates and times."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([f.with_type(plain(f.type)) for f in kind])
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, kind.item_field.with_type(plain(kind.item_type)))
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(plain(kind.value_type)))
        if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
            return pa.int64()
        # The cast of a null to a null inside a list of structs breaks it.
        return pa.int32() if pa.types.is_date32(kind) or pa.types.is_null(kind) else kind

    return column.cast(plain(column.type)).to_pylist()


def visible(values: pa.Array) -> pa.Array:
    """Return the array without what lies below its nulls, which nothing reads."""
    kind = values.type
    if pa.types.is_map(kind):
        return visible(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    if pa.types.is_list(kind):
        ends = np.cumsum([0, *values.value_lengths().fill_null(0).to_pylist()]).astype(np.int32)
        return pa.ListArray.from_arrays(ends, visible(values.flatten()), mask=values.is_null())
    if pa.types.is_struct(kind) and kind.num_fields:
        children = [visible(child) for child in values.flatten()]
        return pa.StructArray.from_arrays(children, names=[field.name for field in kind], mask=values.is_null())
    return values


def decoded(schema: Any, rows: list[bytes | None], writer: Any = None) -> tuple[pa.Array, dict[int, str]]:
    """The column and the reasons: of all rows at once in C, the same of each row, read as vectors or one by one."""
    needed = avro(schema), {7: avro(writer or schema)}, writer is not None, "value"
    in_c = make(DecoderInput(*needed))
    with mock.patch.object(decoding, "compiled", return_value=None):
        decoder = make(DecoderInput(*needed))
    rows = [None if row is None else b"\0\0\0\0\7" * (writer is not None) + row for row in rows]
    data = pa.array(rows, pa.binary())
    result = decoder.decode(data)
    assert result.column.type == decoder.field.type
    result.column.validate(full=True)
    same = in_c.decode(data)
    same.column.validate(full=True)
    assert same.reasons == result.reasons
    assert same.column.type == result.column.type
    # NaN is not equal to itself.
    assert visible(same.column).to_string(window=1000) == visible(result.column).to_string(window=1000)
    for most in (0, 1, 64):
        with mock.patch.object(nested, "_MOST_ITEMS", most):
            alone = [decoder.decode(data[row : row + 1]) for row in range(len(data))]
            assert pa.concat_arrays([a.column for a in alone]).equals(result.column)
            assert {row: a.reasons[0] for row, a in enumerate(alone) if a.reasons} == result.reasons
    return result.column, dict(result.reasons)


@given(written())
def test_what_fastavro_writes_is_read(case: tuple[Any, list[bytes], list[Any]]) -> None:
    schema, rows, values = case
    column, reasons = decoded(schema, [*rows, None])
    assert reasons == {}
    assert physical(column) == [*values, None]


@given(written(), st.data())
def test_bytes_that_are_no_record_are_never_a_wrong_row(
    case: tuple[Any, list[bytes], list[Any]], data: st.DataObject
) -> None:
    schema, rows, values = case
    row = data.draw(st.sampled_from(rows))
    place = data.draw(st.integers(0, len(row)))
    kind = data.draw(st.sampled_from(["cut", "more", "random", "changed"]))
    other = {
        "cut": row[:place],
        "more": row + data.draw(st.binary(min_size=1)),
        "random": data.draw(st.binary(max_size=30)),
        "changed": row[:place] + data.draw(st.binary(min_size=1, max_size=3)) + row[place + 1 :],
    }[kind]
    column, reasons = decoded(schema, [rows[0], other, *rows])
    # The others are as they were.
    assert [v for i, v in enumerate(physical(column)) if i != 1] == [values[0], *values]
    assert set(reasons) <= {1}
    if kind == "more":
        assert "follow the record" in reasons[1] or "block" in reasons[1] or reasons
    if not reasons:
        # It is a record: fastavro reads the same, to the last byte, and writes the shortest form of it. Without logical
        # types, for Python has no dates before the year 1 and after 9999.
        bare = json.loads(json.dumps(schema).replace('"logicalType"', '"meaning"'))
        source = io.BytesIO(other)
        again = fastavro.schemaless_reader(source, fastavro.parse_schema(bare), None, return_record_name=True)
        assert source.read() == b""
        again = encode(bare, again)
        column, reasons = decoded(schema, [other, again])
        assert reasons == {}
        assert repr(physical(column)[0]) == repr(physical(column)[1])


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": n, "type": t, **(m[0] if m else {})} for n, t, *m in fields],
    }


OLD = record(
    ("a", "int"),
    ("b", "string"),
    ("c", ["null", "float"]),
    ("e", {"type": "enum", "name": "E", "symbols": ["x", "y", "z"]}),
)
VALUE = {"a": 7, "b": "text", "c": 1.5, "e": "y"}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (record(("a", "long"), ("b", "bytes"), ("c", ["null", "double"])), {"a": 7, "b": b"text", "c": 1.5}),
        (record(("c", ["float", "null"]), ("a", "double")), {"c": 1.5, "a": 7.0}),
        (record(("n", "string", {"default": "d"}), ("a", "int")), {"n": "d", "a": 7}),
        (record(("n", ["null", "int"], {"default": None})), {"n": None}),
        (record(("n", {"type": "map", "values": "bytes"}, {"default": {"k": "\u00ff"}})), {"n": [("k", b"\xff")]}),
        (record(("n", record(("q", "int", {"default": 3}), name="Q"), {"default": {}})), {"n": {"q": 3}}),
        (record(("renamed", "int", {"aliases": ["a"]})), {"renamed": 7}),
        (record(("b", "string", {"aliases": ["c"]}), ("a", "int", {"aliases": ["b"]})), {"b": "text", "a": 7}),
        (record(("e", OLD["fields"][3]["type"]), ("a", "int", {"aliases": ["e"]})), {"e": "y", "a": 7}),
        (record(("n", "int", {"default": 1 << 40})), "the default of field n: Value 1099511627776 too large"),
        (record(("n", {"type": "fixed", "name": "F", "size": 3}, {"default": "ab"})), "the default of field n: "),
        (record(("n", {"type": "enum", "name": "G", "symbols": ["A"]}, {"default": "B"})), "an enum has no symbol B"),
        (record(("a", ["null", "long", "string"])), {"a": {"long": 7, "string": None}}),
        (record(("c", "float")), {"c": 1.5}),
        (record(("e", {"type": "enum", "name": "E", "symbols": ["y"]})), {"e": "y"}),
        (record(("e", {"type": "enum", "name": "E", "symbols": ["q"], "default": "q"})), {"e": "q"}),
        (record(("e", {"type": "enum", "name": "E", "symbols": ["z"]})), "field e: the enum's symbol y is not in"),
        (record(("a", "string")), "field a: found int, expected string"),
        (record(("n", "int")), "field n is missing and has no default"),
        (record(("a", "int"), name="Other"), "found record R, expected Other"),
        (record(("c", "string")), "field c: found null, expected string"),
        (record(("c", ["null", "string"])), "field c: a union's branch does not fit"),
        (record(("a", {"type": "int", "logicalType": "date"})), {"a": 7}),
    ],
)  # fmt: skip
def test_a_record_is_read_as_the_schema_that_the_run_writes(new: Any, expected: Any) -> None:
    column, reasons = decoded(new, [encode(OLD, VALUE)], OLD)
    if isinstance(expected, str):
        assert expected in reasons[0]
        assert column.to_pylist() == [None]
        return
    assert reasons == {}
    assert physical(column) == [expected]
    # fastavro says the same.
    by_fastavro = (
        fastavro.schemaless_reader(io.BytesIO(encode(OLD, VALUE)), OLD, new) if "aliases" not in str(new) else None
    )
    if by_fastavro and set(by_fastavro) == {"a"} and by_fastavro["a"] == 7:
        assert column[0].as_py()["a"] is not None


def test_a_field_that_has_another_ones_alias_as_its_name_is_not_replaced() -> None:
    """A writer that has both the old and the new name."""
    for names in (("old", "new"), ("new", "old")):
        writer = record(*((name, "int") for name in names))
        column, _ = decoded(
            record(("new", "int", {"aliases": ["old"]})), [encode(writer, {"old": 1, "new": 2})], writer
        )
        assert column.to_pylist() == [{"new": 2}]


def test_the_time_to_plan_how_to_read_grows_with_the_size_of_the_schema_only() -> None:
    """Twenty levels of optional records: three times the calls for each level would take years."""
    schema: Any = "int"
    for level in range(20):
        schema = record(("n", ["null", schema]), name=f"N{level}")
    column, reasons = decoded(schema, [b"\0"], schema)
    assert (column.to_pylist(), reasons) == ([{"n": None}], {})


def test_types_and_what_arrow_cannot_say() -> None:
    schema = record(
        ("at", {"type": "long", "logicalType": "timestamp-micros"}, {"doc": "when"}),
        ("e", {"type": "enum", "name": "x.E", "symbols": ["a", "b"]}),
        ("f", ["null", {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}]),
        ("u", ["int", "string"]),
        ("l", {"type": "array", "items": "int"}),
    )
    field = make(DecoderInput(avro(schema))).field
    assert field.metadata == {b"avro.name": b"R"}
    parts = {part.name: part for part in field.type}
    assert [str(part.type) for part in field.type] == [
        "timestamp[us, tz=UTC]", "string", "fixed_size_binary[12]", "struct<int: int32, string: string>",
        "list<item: int32>",
    ]  # fmt: skip
    assert field.nullable
    assert all(part.nullable for part in field.type)
    assert parts["at"].metadata == {b"doc": b"when"}
    assert parts["e"].metadata == {b"avro.name": b"x.E", b"avro.symbols": b'["a", "b"]'}
    assert parts["f"].metadata == {b"avro.name": b"F", b"avro.logicalType": b"duration"}


def test_schemas_that_are_refused() -> None:
    tree = record(("kids", {"type": "array", "items": "R"}))
    with pytest.raises(ConfigError, match="Avro type R contains itself"):
        make(DecoderInput(avro(tree)))
    with pytest.raises(ConfigError, match="is not an Avro schema"):
        make(DecoderInput(Schema(kind="AVRO", text="{")))


def test_a_schema_with_references() -> None:
    money = avro(record(("n", "long"), name="x.Money"))
    schema = avro(record(("a", "x.Money"), ("b", "x.Money")), Reference(name="x.Money", imported=money))
    result = make(DecoderInput(schema)).decode(pa.array([b"\x02\x04"]))
    assert result.column.to_pylist() == [{"a": {"n": 1}, "b": {"n": 2}}]


@pytest.mark.parametrize("digits", [4, 18, 19, 20, 38, 60])
def test_decimals_with_too_many_digits_are_refused(digits: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 1}
    most, width = 10**digits - 1, (10**digits).bit_length() // 8 + 1
    numbers = [most, -most, most + 1, -most - 1, 0]
    column, reasons = decoded(schema, [encode("bytes", n.to_bytes(width, signed=True)) for n in numbers])
    assert column.to_pylist() == [Decimal(f"{most}e-1"), Decimal(f"-{most}e-1"), None, None, 0]
    assert set(reasons) == {2, 3}
    assert f"a decimal has {digits + 1} digits, expected at most {digits}" in reasons[2]


def test_frames() -> None:
    decoder = make(DecoderInput(avro("long"), {1: avro("int"), 2: avro("string")}, True))
    rows = [b"\0\0\0\0\1\2", b"\0\0\0\0\2\2a", b"\0\0\0\0\3\2", b"\1\0\0\0\1\2", b"\0\0\0\0", None]
    result = decoder.decode(pa.array(rows))
    assert result.column.to_pylist() == [1, None, None, None, None, None]
    assert sorted(result.reasons) == [1, 2, 3, 4]
    assert "schema id 2 (" in result.reasons[1]
    assert "found string, expected long" in result.reasons[1]
    assert result.reasons[2] == "schema id 3 is not one of the schemas of the plan (1, 2)"
    assert "frame" in result.reasons[3]


@example(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@given(st.binary(max_size=12))
def test_numbers_of_any_bytes(data: bytes) -> None:
    for kind in ("long", "int"):
        column, reasons = decoded(kind, [data, struct.pack("b", 2)])
        assert column[1].as_py() == 1
        if not reasons:
            assert encode(kind, column[0].as_py())[0] & 0x7F == data[0] & 0x7F


DECIMAL = {"type": "bytes", "logicalType": "decimal"}


@pytest.mark.parametrize(
    ("definition", "row", "value"),
    [
        # A decimal that Avro's specification calls invalid is its plain type.
        (DECIMAL, b"\2\1", b"\1"),
        ({**DECIMAL, "precision": 0}, b"\2\1", b"\1"),
        ({**DECIMAL, "precision": 2, "scale": 3}, b"\2\1", b"\1"),
        ({**DECIMAL, "precision": 2, "scale": -1}, b"\2\1", b"\1"),
        ({"type": "string", "logicalType": "decimal", "precision": 4}, b"\2x", "x"),
        # An empty record says only that it is there; an array of items without bytes has its number of items.
        ({"type": "record", "name": "E", "fields": []}, b"", True),
        (["null", {"type": "record", "name": "E", "fields": []}], b"\0", None),
        ({"type": "array", "items": "null"}, b"\4\0", [None, None]),
    ],
)
def test_schemas_that_say_odd_things_are_read(definition: Any, row: bytes, value: Any) -> None:
    column, reasons = decoded(record(("f", definition)), [row])
    assert (column.to_pylist(), reasons) == ([{"f": value}], {})


def test_an_array_of_more_items_without_bytes_than_65536_is_refused() -> None:
    schema = record(("f", {"type": "array", "items": "null"}))
    count = io.BytesIO()
    fastavro.schemaless_writer(count, "long", 65_537)
    _, reasons = decoded(schema, [count.getvalue() + b"\0"])
    assert list(reasons) == [0]


def test_an_invalid_default_matters_only_where_it_is_needed() -> None:
    """A registry takes such schemas, and Java writes with them."""
    old = record(("a", "string", {"default": None}))
    new = record(("a", ["null", "string"], {"default": None}))
    for target in (old, new):
        column, reasons = decoded(target, [b"\2x"], old)
        assert (column.to_pylist(), reasons) == ([{"a": "x"}], {})
    for wrong in (None, 5, True, ["x"]):
        needs = record(("a", "string", {"default": wrong}))
        assert "the default of field a: found" in decoded(needs, [b""], record())[1][0]


def test_a_value_without_fields_is_true() -> None:
    column, reasons = decoded(record(), [b"", None])
    assert (column.to_pylist(), reasons) == ([True, None], {})

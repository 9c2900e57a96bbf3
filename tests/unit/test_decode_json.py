"""JSON: documents as columns, which keep the digits of numbers and refuse what does not fit."""

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.messages.foreign_text import without_marks
from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.decode.base import Decoded, DecoderInput
from kafka_archiver.records.decode.json_text import decoder as decoding
from kafka_archiver.records.decode.json_text.columns import from_columns
from kafka_archiver.records.decode.json_text.decoder import make_json, make_json_schema
from kafka_archiver.records.decode.json_text.infer import infer
from kafka_archiver.records.decode.undecodable import Guarded

pytestmark = pytest.mark.unit


def schema(text: Any, *references: Reference) -> Schema:
    return Schema(kind="JSON", text=json.dumps(text), references=references)


def decoded(schema: Schema | None, rows: list[bytes]) -> tuple[pa.Array, dict[int, str]]:
    """The column and the reasons: of all rows at once, the same in C, and the same of each row alone."""
    in_c = Guarded(make_json(DecoderInput(schema)))
    with mock.patch.object(decoding, "compiled", return_value=None):
        decoder = Guarded(make_json(DecoderInput(schema)))
    data = pa.array(rows, pa.binary())
    column, reasons, _ = decoder.decode(data)
    assert column.type == decoder.field.type
    column.validate(full=True)
    same = in_c.decode(data)
    same.column.validate(full=True)
    assert same.column.type == column.type
    assert (same.column, same.reasons) == (column, reasons)
    alone = [decoder.decode(data[row : row + 1]) for row in range(len(rows))]
    assert pa.concat_arrays([a.column for a in alone]).equals(column)
    assert {row: a.reasons[0] for row, a in enumerate(alone) if a.reasons} == reasons
    return column, dict(reasons)


LARGE, SMALL = 2**63 - 1, -(2**63)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("int64", str(LARGE), LARGE),
        ("int64", str(SMALL), SMALL),
        ("int64", str(LARGE + 1), "does not fit int64"),
        ("int64", "1.5", "found 1.5, expected an integer"),
        ("int8", "128", "does not fit int8"),
        ("uint32", "-1", "does not fit uint32"),
        ("number", "12345678901234567890.1234567890", "12345678901234567890.1234567890"),
        ("number", "1.10E+2", "1.10E+2"),
        ("number", '"1"', 'found "1", expected a number'),
        ("number", "null", None),
        ("float64", "0.1", 0.1),
        ("float64", "1e999", "out of range"),
        ("decimal(10,2)", "19.990", Decimal("19.99")),
        ("decimal(10,2)", '"-19.99"', Decimal("-19.99")),
        ("decimal(10,2)", "19.991", "does not fit decimal128(10, 2)"),
        ("decimal(10,2)", "1e9", "does not fit decimal128(10, 2)"),
        ("decimal(10,2)", "1e999999999", "that fits decimal128(10, 2)"),
        ("decimal(10,2)", '"NaN"', "expected a number"),
        ("bool", "1", "Expected `bool | null`"),
        ("string", '"\\u00e9"', "é"),
        ("string", '"\\ud800"', "truncated"),
        ("binary", '"AP8="', b"\0\xff"),
        ("json", '{"a": [1.10, {}]}', '{"a": [1.10, {}]}'),
        ("date", '"2026-11-21"', date(2026, 11, 21)),
        ("date", '"2026-02-30"', "expected ISO 8601 as date32"),
        ("timestamp[ms]", '"2026-11-21T12:00:00Z"', NOON),
        ("timestamp[ms]", '"2026-11-21T14:00:00.000+02:00"', NOON),
        ("timestamp[ms]", '"2026-11-21 12:00:00"', NOON),
        ("timestamp[ms]", "1795262400000", NOON),
        ("timestamp[ms]", '"2026-11-21T12:00:00.0001Z"', "expected ISO 8601"),
        ({"type": "timestamp[s]", "format": "%d.%m.%Y %H:%M"}, '"21.11.2026 12:00"', NOON),
        ({"type": "timestamp[s]", "format": "%d.%m.%Y"}, '"2026-11-21"', "expected %d.%m.%Y"),
        ({"type": "date", "format": "%d.%m.%Y"}, '"31.02.2026"', "expected %d.%m.%Y"),
        ({"type": "timestamp[ms]", "format": "%Y%m%d%H%M%z"}, '"202611211400+0200"', NOON),
        ({"type": "timestamp[ms]", "format": "%S.%f"}, '"59.0001"', "expected %S.%f"),
        ("timestamp[s]", str(LARGE), "does not fit timestamp"),
        ("float32", "1e39", "does not fit float"),
        ({"type": "list", "items": "int64"}, "[1, null]", [1, None]),
        ({"type": "map", "items": "number"}, '{"a": 1.0}', [("a", "1.0")]),
        ({"type": "struct", "columns": [{"name": "b", "type": "bool"}]}, '{"b": true, "c": 1}', {"b": True}),
        ({"type": "struct", "columns": [{"name": "b", "type": "int8"}]}, '{"b": 999}', "b: a value does not fit"),
    ],
)
def test_what_a_column_takes(column: Any, text: str, expected: Any) -> None:
    column = column if isinstance(column, dict) else {"type": column}
    schema = from_columns([{"name": "before", "type": "string"}, {"name": "a", **column}])
    good = b'{"before": "x"}'
    values, reasons = decoded(schema, [good, b'{"a": ' + text.encode() + b"}", good])
    assert values[0].as_py() == values[2].as_py() == {"before": "x", "a": None}
    if isinstance(expected, str) and reasons:
        assert expected in reasons[1]
        assert not values[1].is_valid
    else:
        assert reasons == {}
        assert values[1].as_py()["a"] == expected


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)


def test_what_is_not_utf8_is_refused_also_beside_the_columns() -> None:
    schema = from_columns([{"name": "a", "type": "string"}])
    values, reasons = decoded(schema, [b'{"a": "x"}', b'{"a": "x", "b": "\xff"}', b'{"a": "\xff"}'])
    assert values.to_pylist() == [{"a": "x"}, None, None]
    assert reasons == dict.fromkeys([1, 2], "the bytes are not UTF-8")


VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(max_size=4), v, max_size=4),
)  # fmt: skip
DOCUMENTS = st.lists(
    st.dictionaries(st.sampled_from(["a", "A", "b", "ä", ""]), VALUES, max_size=4), min_size=1, max_size=5
)


def plain(value: Any, field: pa.Field) -> Any:
    """A column's value as JSON has it, without nulls."""
    text = (field.metadata or {}).get(b"json")
    if value is None or text:
        return None if value is None else plain_json(json.loads(value))
    if pa.types.is_struct(field.type):
        return {f.name: part for f in field.type if (part := plain(value[f.name], f)) is not None}
    if pa.types.is_list(field.type):
        return [plain(item, field.type.value_field) for item in value]
    return value


def plain_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain_part for name, part in value.items() if (plain_part := plain_json(part)) is not None}
    return [plain_json(item) for item in value] if isinstance(value, list) else value


@given(DOCUMENTS)
def test_what_infer_finds_reads_all_documents(documents: list[dict[str, Any]]) -> None:
    rows = [json.dumps(document).encode() for document in documents]
    schema = infer(rows)
    column, reasons = decoded(schema, rows)
    assert reasons == {}
    field = make_json(DecoderInput(schema)).field
    assert [plain(value, field) for value in column.to_pylist()] == plain_json(documents)


def test_infer() -> None:
    inferred = infer(
        [b'{"b": 1, "a": {"x": [1, 2.50]}, "n": null}', b"no JSON", b'{"b": 18446744073709551616, "c": "2026-11-21"}']
    )
    assert json.loads(inferred.text)["properties"] == {
        "b": {"type": "number"},
        "a": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "number"}}}},
        "n": {},
        "c": {"type": "string"},
    }
    assert infer([]) == schema({"type": "object"})
    # Readers do not distinguish cases.
    assert json.loads(infer([b'{"a": {"x": 1}, "A": {"x": 1, "X": 1}}']).text)["properties"]["A"] == {}
    # One odd record does not keep the others from being archived.
    deep = b'{"a":' + b"[" * 800 + b"]" * 800 + b"}"
    for odd in (b'{"\\ud800": 1}', deep, deep.replace(b"[", b'{"b":[').replace(b"]", b"]}")):
        column, reasons = decoded(infer([odd, b'{"a": 1}']), [b'{"a": 1}'])
        assert (len(column), reasons) == (1, {})


@given(DOCUMENTS, st.data())
def test_bytes_that_are_no_document_are_never_a_wrong_row(documents: list[dict[str, Any]], data: st.DataObject) -> None:
    rows = [json.dumps(document, ensure_ascii=False).encode() for document in documents]
    row = data.draw(st.sampled_from(rows))
    cut = data.draw(st.integers(0, len(row)))
    other = data.draw(
        st.sampled_from(
            [row[:cut], row[cut:], row + row, row[:cut] + b"\n" + row[cut:], row[:cut] + b"\xff" + row[cut:]]
        )
        | st.binary(max_size=20)
    )
    schema = infer(rows)
    column, reasons = decoded(schema, [*rows, other, *rows])
    values = [value.as_py() for value in column]
    assert values[: len(rows)] == values[len(rows) + 1 :]
    assert set(reasons) <= {len(rows)}
    if not reasons:
        field = make_json(DecoderInput(schema)).field
        parsed = json.loads(other)
        decoded_value = plain(values[len(rows)], field)
        assert decoded_value == (
            plain_json(parsed) and {k: v for k, v in plain_json(parsed).items() if k in decoded_value}
        )
        assert not any(isinstance(v, float) and math.isnan(v) for v in (parsed or {}).values())


MONEY = schema({"definitions": {"m": {"$ref": "#/definitions/n"}, "n": {"type": "integer"}}})
NODE = {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}}}


@pytest.mark.parametrize(
    ("text", "references", "expected"),
    [
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"type": "integer"}]}}}, (), "struct<a: int64>"),
        ({"properties": {"a": {"type": ["string", "null"]}, "b": {"enum": ["x"]}}}, (), "struct<a: string, b: string>"),
        ({"properties": {"a": {"type": "number", "multipleOf": 0.01}}}, (), "struct<a: decimal128(38, 2)>"),
        ({"properties": {"a": {"type": "number", "format": "double"}}}, (), "struct<a: double>"),
        ({"properties": {"a": {"type": "string", "format": "date-time"}}}, (), "struct<a: timestamp[us, tz=UTC]>"),
        ({"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}, (), "struct<a: string>"),
        ({"type": "array", "items": {"type": "boolean"}}, (), "list<item: bool>"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"type": "integer"}}}}}, (), "struct<b: int64>"),
        (
            {"properties": {"a": {"$ref": "money.json#/definitions/m"}}},
            (Reference(name="money.json", imported=MONEY),),
            "struct<a: int64>",
        ),
        ({"$ref": "#/definitions/node", "definitions": {"node": NODE}}, (), "#/definitions/node contains itself"),
        ({"$ref": "other.json"}, (), "other.json is not one of its references"),
        ({"properties": {'a"b': {"type": "integer"}}}, (), "a name cannot be a column"),
    ],
)  # fmt: skip
def test_columns_of_a_json_schema(text: Any, references: tuple[Reference, ...], expected: str) -> None:
    result = schema(text, *references)
    if "<" in expected:
        assert str(make_json(DecoderInput(result)).field.type) == expected
    else:
        with pytest.raises(ConfigError, match=expected.replace("$", r"\$")):
            make_json(DecoderInput(result))


def test_json_schema_checks_each_document_by_its_own_schema() -> None:
    reader = schema({"properties": {"a": {"type": "integer"}}})
    strict = {"type": "object", "properties": {"a": {"$ref": "positive"}}, "required": ["a"]}
    writer = schema(strict, Reference(name="positive", imported=schema({"type": "integer", "minimum": 1})))
    decoder = make_json_schema(DecoderInput(reader, {1: writer, 2: schema({}), 3: schema({"type": 5})}, True))
    frame = [
        b"\0\0\0\0" + bytes([n]) + text
        for n, text in [(1, b'{"a":1}'), (1, b'{"a":0}'), (2, b'{"a":0}'), (1, b"{}"), (3, b"{}")]
    ]
    result = decoder.decode(pa.array(frame))
    assert result.column.to_pylist() == [{"a": 1}, None, {"a": 0}, None, None]
    assert "not valid by its JSON Schema: a (minimum): 0 is less than the minimum of 1" in without_marks(
        result.reasons[1], True
    )
    assert '"a" is a required property' in result.reasons[3]
    assert "schema id 3 cannot be used" in result.reasons[4]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "expected a list of columns"),
        ([{"type": "int64"}], "columns.0: expected a column with name and type"),
        ([{"name": "a", "type": "int"}], "columns.a.type: expected one of string, bool"),
        ([{"name": "a", "type": "decimal(5,6)"}], "columns.a.type: expected one of"),
        ([{"name": "a", "type": "int64", "format": "%Y"}], r"a column of type int64 has doc, type; found \['format'\]"),
        ([{"name": "a", "type": "int64"}, {"name": "a", "type": "bool"}], "the column 'a' is there twice"),
        ([{"name": "a", "type": "list"}], r"columns.a.items: a column of type None"),
    ],
)
def test_lists_of_columns_that_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_columns(columns)


@pytest.mark.parametrize(("depth", "is_read"), [(900, True), (980, True), (1000, True), (1001, False), (1020, False)])
@pytest.mark.parametrize("checked", [False, True])
def test_how_deep_a_document_may_be_depends_on_neither_stack_nor_python(
    depth: int, is_read: bool, checked: bool
) -> None:
    columns = schema({"type": "object", "properties": {"n": {"type": "integer"}, "any": {}}})
    decoder = make_json_schema(DecoderInput(columns)) if checked else make_json(DecoderInput(columns))
    rows = [
        b'{"n":1,"%s":%s}' % (name, b"[" * (depth - 1) + b"1e9" + b"]" * (depth - 1)) for name in (b"any", b"unknown")
    ]

    def decode_below(frames: int) -> Decoded:
        return decode_below(frames - 1) if frames else decoder.decode(pa.array(rows, pa.binary()))

    for frames in (0, 600, 850):
        read = decode_below(frames)
        assert [value and value["n"] for value in read.column.to_pylist()] == ([1, 1] if is_read else [None, None])
        assert read.reasons == ({} if is_read else dict.fromkeys((0, 1), "the document is nested too deep"))

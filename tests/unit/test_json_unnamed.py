"""JSON Schema: columns are all names that a valid document may have; what has no name is not lost in silence."""

import json
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema, Unknown
from kafka_archiver.records.decode.base import Decoded, DecoderInput
from kafka_archiver.records.decode.decoders import decoder
from kafka_archiver.records.decode.json_text.unnamed import COLUMN

pytestmark = pytest.mark.unit

OLD, NEW = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
X = {"x": {"type": "integer"}}
Y = {"properties": {"y": {"type": "string"}}}
VALUE = {"x": 1, "y": "there"}


def decoded(schema: Any, *values: Any, unknown: Unknown | None = "drop") -> Decoded:
    """The result of all rows at once, which is that of each row alone."""
    text = Schema(kind="JSON", text=json.dumps(schema))
    schema_decoder = decoder("json_schema", DecoderInput(text, unknown=unknown))
    data = pa.array([value if isinstance(value, bytes) else json.dumps(value).encode() for value in values])
    result = schema_decoder.decode(data)
    assert result.column.type == schema_decoder.field.type
    result.column.validate(full=True)
    alone = [schema_decoder.decode(data[row : row + 1]) for row in range(len(data))]
    assert pa.concat_arrays([each.column for each in alone]).equals(result.column)
    assert [row for row, each in enumerate(alone) if each.reasons] == sorted(result.reasons)
    assert [row for row, each in enumerate(alone) if each.unnamed] == sorted(result.unnamed)
    return result


@pytest.mark.parametrize(
    "beside",
    [
        {"allOf": [Y]},
        {"oneOf": [{**Y, "required": ["y"]}, {"properties": {"z": {}}, "required": ["z"]}]},
        {"anyOf": [Y, {"properties": {"z": {"type": "string"}}}]},
        {"if": {"properties": {"x": {"const": 1}}}, "then": Y},
        {"if": {"properties": {"x": {"const": 2}}}, "else": Y},
        {"dependentSchemas": {"x": Y}},
        {"$ref": "#/$defs/y"},
        {"allOf": [{"allOf": [{"$ref": "#/$defs/y"}]}, {"$ref": "#/$defs/y"}]},
    ],
)
def test_properties_that_are_named_elsewhere_are_columns(beside: Any) -> None:
    schema = {"type": "object", "properties": X, **beside}
    for whole, value in (
        ({**schema, "$schema": NEW, "$defs": {"y": Y}}, VALUE),
        ({"$schema": NEW, "$defs": {"y": Y}, "type": "object", "properties": {"o": schema}}, {"o": VALUE}),
    ):
        result = decoded(whole, value)
        [row] = result.column.to_pylist()
        assert not result.reasons
        assert not result.unnamed
        inner = row.get("o") or row
        assert {name: inner[name] for name in VALUE} == VALUE


def test_a_ref_of_draft_7_stands_alone() -> None:
    schema = {"$schema": OLD, "definitions": {"P": {"type": "object", "properties": X}}, "$ref": "#/definitions/P", **Y}
    assert decoded(schema, VALUE).column.to_pylist() == [{"x": 1}]


def test_old_plans_keep_their_columns() -> None:
    schema = {"$schema": NEW, "type": "object", "properties": X, "allOf": [Y]}
    result = decoded(schema, VALUE, {"x": 1, "more": 2}, unknown=None)
    assert (result.column.to_pylist(), result.unnamed) == ([{"x": 1}, {"x": 1}], {})


PREFIXED = {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}}
PATTERNED = {
    "type": "object", "patternProperties": {"^s": {"type": "string"}}, "additionalProperties": {"type": "integer"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "value", "uniform"),
    [
        (PREFIXED, ["x", 1], []),
        (PATTERNED, {"s": "x", "n": 1}, {"n": 1}),
        ({"type": ["object", "string"], "properties": X}, "x", {"x": 1}),
    ],
)
def test_what_may_have_values_of_several_types_is_json_text(part: Any, value: Any, uniform: Any) -> None:
    schema = {"$schema": NEW, "type": "object", "properties": {"a": part}}
    result = decoded(schema, {"a": value}, {"a": uniform})
    assert [json.loads(row["a"]) for row in result.column.to_pylist()] == [value, uniform]
    # A plan of 0.5.0 keeps its columns.
    text = Schema(kind="JSON", text=json.dumps(schema))
    older = decoder("json_schema", DecoderInput(text, json_rules=1))
    documents = pa.array([json.dumps({"a": each}).encode() for each in (value, uniform)])
    assert list(older.decode(documents).reasons) == [0]


@pytest.mark.parametrize(
    ("reference", "part"),
    [
        ("#whole", {"$anchor": "whole", "type": "integer"}),
        ("https://example.com/s#/$defs/n", {"type": "integer"}),
        ("https://example.com/s#whole", {"$dynamicAnchor": "whole", "type": "integer"}),
    ],
)
def test_a_reference_may_be_an_anchor_or_the_schema_s_own_name(reference: str, part: Any) -> None:
    schema = {"$schema": NEW, "$id": "https://example.com/s", "$defs": {"n": part}, "type": "object"}
    schema |= {"properties": {"a": {"$ref": reference}}}
    assert decoded(schema, {"a": 5}).column.to_pylist() == [{"a": 5}]
    with pytest.raises(ConfigError, match="no anchor other"):
        decoded({**schema, "properties": {"a": {"$ref": "#other"}}})


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"$dynamicRef": "#node"}, {"a": {"b": 1}}),
        ({"const": {"k": [1, None]}}, {"k": [1, None]}),
        ({"enum": [1, "x", True]}, True),
        ({"type": "array", "contains": {"type": "integer"}}, ["x", 1]),
        ({"type": "object", "unevaluatedProperties": {"type": "integer"}}, {"n": 1}),
        ({"type": "array", "prefixItems": [{}], "unevaluatedItems": {"type": "integer"}}, ["x", 1]),
    ],
)
def test_what_no_column_can_say_is_json_text(part: Any, value: Any) -> None:
    schema = {"$schema": NEW, "$dynamicAnchor": "node", "type": "object", "properties": {"a": part}}
    [row] = decoded(schema, {"a": value}).column.to_pylist()
    assert json.loads(row["a"]) == value


def test_parts_that_differ_or_contain_themselves_are_json_text() -> None:
    different = [{"properties": {"y": {"type": "string"}}}, {"properties": {"y": {"type": "integer"}}}]
    schema = {"$schema": NEW, "type": "object", "properties": X, "anyOf": different}
    assert decoded(schema, VALUE, {"x": 1, "y": 5}).column.to_pylist() == [{"x": 1, "y": '"there"'}, {"x": 1, "y": "5"}]
    nested = [{"properties": {"d": {"type": "object", "properties": {name: {"type": "integer"}}}}} for name in "ab"]
    schema = {"$schema": NEW, "type": "object", "properties": X, "anyOf": nested}
    assert decoded(schema, {"d": {"b": 1}}).column.to_pylist() == [{"x": None, "d": {"a": None, "b": 1}}]
    tree = {"$schema": NEW, "type": "object", "properties": X, "allOf": [{"properties": {"next": {"$ref": "#"}}}]}
    assert decoded(tree, {"x": 1, "next": {"x": 2}}).column.to_pylist() == [
        {"x": 1, "next": {"x": 2, "next": None}}
    ] or decoded(tree, {"x": 1, "next": {"x": 2}}).column.to_pylist() == [{"x": 1, "next": '{"x": 2}'}]


def test_a_schema_that_repeats_its_columns_without_end_is_refused() -> None:
    parts: dict[str, Any] = {"d0": {"type": "object", "properties": {"leaf": {"type": "string"}}}}
    for number in range(40):
        named = {"properties": {"p": {"$ref": f"#/$defs/d{number}"}}}
        parts[f"d{number + 1}"] = {"type": "object", "properties": {"a": {}}, "anyOf": [named, named]}
    with pytest.raises(ConfigError, match="more than 100,000 columns"):
        decoded({"$schema": NEW, "$defs": parts, **parts["d40"]})


MORE = {"type": "object", "properties": {"x": {"type": "integer"}, "o": {"type": "object", "properties": X}}}


def test_what_has_no_name_is_counted_added_or_a_dead_letter() -> None:
    values = [{"x": 1}, b'{"x": 2, "n": 1.00, "o": {"x": 1, "deep": [1, {}]}}', {"x": 3}]
    unnamed = '{"n":1.00,"o":{"deep":[1, {}]}}'
    result = decoded(MORE, *values)
    assert result.column.to_pylist()[1] == {"x": 2, "o": {"x": 1}}
    assert result.unnamed == {1: unnamed}
    result = decoded(MORE, *values, unknown="column")
    assert [row[COLUMN] for row in result.column.to_pylist()] == [None, unnamed, None]
    result = decoded(MORE, *values, unknown="dead_letter")
    assert result.reasons == {1: f"the JSON Schema does not name these properties: {unnamed}"}
    assert result.column.to_pylist() == [{"x": 1, "o": None}, None, {"x": 3, "o": None}]


def test_the_added_column_is_no_property_of_the_schema() -> None:
    with pytest.raises(ConfigError, match=COLUMN):
        decoded({"type": "object", "properties": {COLUMN: {}}}, unknown="column")


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> Any:
    """A schema of objects that names properties in any place."""
    names = st.sampled_from("abcd")
    mixed = {"type": ["object", "string"], "properties": {"a": {"type": "integer"}}}
    leaf = st.sampled_from([{"type": "integer"}, {"type": "string"}, {}, True, mixed, PATTERNED])
    inner = leaf if depth == 0 else st.one_of(leaf, objects(depth=depth - 1))
    properties = st.dictionaries(names, inner, max_size=2)
    schema = {"type": "object", "properties": draw(properties)}
    for keyword in draw(st.lists(st.sampled_from(["allOf", "anyOf", "oneOf"]), unique=True, max_size=2)):
        schema[keyword] = draw(st.lists(st.builds(dict, properties=properties), min_size=1, max_size=2))
    if draw(st.booleans()):
        schema |= {"if": {"required": ["a"]}, "then": {"properties": draw(properties)}}
    return schema


VALUES = st.recursive(
    st.sampled_from([1, "x", None, 1.5]), lambda inner: st.dictionaries(st.sampled_from("abcde"), inner, max_size=3)
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: inner for name, item in value.items() if (inner := without_nulls(item)) not in (None, {})}
    return value


def joined(row: Any, unnamed: Any, schema_text_columns: bool = True) -> Any:
    """Join a row and its rest: JSON text is parsed."""
    if isinstance(row, dict) and isinstance(unnamed, dict | None):
        unnamed = unnamed or {}
        return {name: joined(row.get(name), unnamed.get(name)) for name in row.keys() | unnamed.keys()}
    if unnamed is not None:
        return unnamed
    if isinstance(row, str) and schema_text_columns:
        try:
            return json.loads(row)
        except ValueError:
            return row
    return row


@given(objects(), st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=4))
def test_nothing_of_a_valid_document_is_lost(schema: Any, value: Any) -> None:
    """jsonschema says what is valid; columns and rest together say the document."""
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    result = decoded({"$schema": NEW, **schema}, value, unknown="column")
    if not valid:
        assert result.reasons
        return
    if result.reasons:
        # An alternative that does not hold names it with another type.
        assert "does not fit the columns" in result.reasons[0]
        assert schema.keys() & {"anyOf", "oneOf", "then"}
        return
    [row] = result.column.to_pylist()
    if isinstance(row, str):
        assert json.loads(row) == value
        return
    unnamed = row.pop(COLUMN, None)
    assert without_nulls(joined(row, unnamed and json.loads(unnamed))) == without_nulls(value)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2020-01-01T00:00:00.1234567Z", 123_456),
        ("2020-01-01t00:00:00.123456789z", 123_456),
        ("2020-01-01T02:00:00.9999999+02:00", 999_999),
        ("2020-01-01T00:00:00z", 0),
    ],
)
def test_times_of_rfc_3339_are_cut_to_microseconds(text: str, micros: int) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "date-time"}}}
    [row] = decoded(schema, {"a": text}).column.cast(pa.struct([("a", pa.int64())])).to_pylist()
    assert row["a"] == 1_577_836_800_000_000 + micros


@pytest.mark.parametrize(
    ("text", "value"),
    [(b"1.0", 1), (b"1e2", 100), (b"-0.0", 0), (b"9007199254740993", 9007199254740993), (b"9007199254740994.0", None)],
)
def test_integers_may_have_a_point_or_an_exponent(text: bytes, value: int | None) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    result = decoded(schema, b'{"x": ' + text + b"}", b'{"x": 5}')
    assert result.column.to_pylist() == [None if value is None else {"x": value}, {"x": 5}]
    if value is None:
        assert "exact only without a point" in result.reasons[0]

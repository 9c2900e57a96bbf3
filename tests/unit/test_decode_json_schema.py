"""JSON with a schema: documents that are certainly valid are read fast, with the verdicts and columns of all others."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.orders import kinds
from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.decode.base import DecoderInput
from kafka_archiver.records.decode.json_text import decoder as decoders
from kafka_archiver.records.decode.json_text.decoder import make_json_schema

pytestmark = pytest.mark.unit

UUID, NOON = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "2026-11-22T12:00:00Z"
DRAFT = "http://json-schema.org/draft-07/schema#"
# Parts of schemas, each with values of which some are valid.
LEAVES: list[tuple[Any, list[Any]]] = [
    ({"type": "string", "description": "text"}, ["x", "", "\U0001f600"]),
    ({"type": "string", "enum": ["A", "B"]}, ["A", "B", "C"]),
    ({"type": ["string", "null"], "enum": ["A", None]}, ["A", None]),
    ({"type": ["string", "null"], "enum": ["A"]}, ["A", None]),
    ({"enum": ["A"]}, ["A", "B"]),
    ({"const": "A"}, ["A", "B"]),
    ({"type": "string", "pattern": r"^\d+$", "maxLength": 2}, ["1", "\u0663", "123"]),
    ({"type": "string", "format": "uuid"}, [UUID, UUID[1:]]),
    ({"type": "string", "format": "date"}, ["2026-11-22", "2026-02-30", "2026"]),
    ({"type": "string", "format": "date-time"}, [NOON, "2026-11-22 12:00:00", NOON[:-1]]),
    ({"type": "string", "contentEncoding": "base64"}, ["AP8=", "A"]),
    ({"type": "integer"}, [1, -1, 2**63, 1.0]),
    ({"type": "integer", "connect.type": "int8", "minimum": 0, "maximum": 200}, [1, -1, 150, 201]),
    ({"type": "integer", "multipleOf": 3}, [3, 0, 4, 3.0]),
    ({"type": ["null", "integer"]}, [1, None]),
    ({"oneOf": [{"type": "null"}, {"type": "integer", "minimum": 0}]}, [1, None, -1]),
    ({"oneOf": [{"type": "null"}, {"type": ["integer", "null"]}]}, [1, None]),
    ({"anyOf": [{"type": "null"}, {"$ref": "#/definitions/positive"}]}, [1, None, -1]),
    ({"$ref": "#/definitions/positive", "title": "beside"}, [1, -1]),
    ({"type": "number"}, [1, 1.5, 1e300]),
    ({"type": "number", "exclusiveMaximum": 9007199254740993}, [9007199254740993, 9007199254740992, 0.5]),
    ({"type": "number", "format": "double"}, [1, 0.1, 9007199254740993]),
    ({"type": "number", "format": "double", "minimum": 1, "multipleOf": 0.5}, [1, 1.5, 0.5, 1.25]),
    ({"type": "number", "multipleOf": 0.01}, [1.25, 1.255]),
    ({"type": "boolean"}, [True, False]),
    ({"type": "boolean", "const": True}, [True, False]),
    ({}, [None, 1, {"x": [1]}]),
    (True, [None, "x"]),
    (False, []),
    ({"type": ["string", "integer"]}, ["x", 1, 1.5]),
    ({"type": "object", "maxProperties": 1}, [{}, {"a": 1}, {"a": 1, "b": 1}]),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [[1], [1, 2], [1, 1]]),
]  # fmt: skip
Drawn = tuple[Any, st.SearchStrategy[Any]]


def leaf(drawn: tuple[Any, list[Any]]) -> Drawn:
    part, values = drawn
    return part, st.sampled_from([*values * 4, None, "x", 1.5, [], {}])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Drawn]) -> Drawn:
    parts = draw(st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3))
    required = draw(st.lists(st.sampled_from([*parts, *parts, "z"]), max_size=2, unique=True))
    more = draw(
        st.sampled_from([{}, {}, {"additionalProperties": False}, {"minProperties": 2}, {"type": ["object", "null"]}])
    )
    names = {name: values for name, (_, values) in parts.items()}
    values = st.fixed_dictionaries(
        {name: names[name] for name in required if name in names},
        optional={name: its for name, its in names.items() if name not in required},
    ) | st.builds(lambda json_schema: {**json_schema, "d": 1.5}, st.fixed_dictionaries(names))
    json_schema = {"properties": {name: part for name, (part, _) in parts.items()}, "type": "object", **more}
    return {**json_schema, "required": required} if required else json_schema, values


def nested(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    return (
        objects(inner)
        | inner.map(lambda d: ({"type": "array", "items": d[0]}, st.lists(d[1], max_size=3)))
        | inner.map(
            lambda d: (
                {"type": "object", "additionalProperties": d[0]},
                st.dictionaries(st.sampled_from(["", "k", "é"]), d[1], max_size=2),
            )
        )
        | inner.map(lambda d: ({"oneOf": [{"type": "null"}, d[0]]}, d[1]))
    )


ROOTS = objects(st.recursive(st.sampled_from(LEAVES).map(leaf), nested, max_leaves=4))
# Two values of a name, of which the last one counts; and other texts that must be no JSON, or no number.
TOKENS = [
    "1e400", "9" * 400, '"\\ud800"', '"\\ud83d\\ude00"', "01", "1.", "-", "1E2", "-0", "NaN", "tru", "[1e400]", "null",
    "[" * 1200 + "]" * 1200, '{"a":1,"a":2}',
]  # fmt: skip


@st.composite
def rows(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> bytes:
    row = json.dumps(draw(values), ensure_ascii=draw(st.booleans())).encode()
    match draw(st.integers(0, 5)):
        case 0:
            name, token = draw(st.sampled_from("abcd")), draw(st.sampled_from(TOKENS))
            at = draw(st.sampled_from([place + 1 for place, byte in enumerate(row) if byte == ord("{")] or [0]))
            return row[:at] + f'"{name}":{token},'.encode() + row[at:]
        case 1:
            at = draw(st.integers(0, len(row)))
            return row[:at] + draw(st.binary(max_size=2)) + row[at + draw(st.integers(0, 1)) :]
    return row


def schema(text: Any, *references: Reference) -> Schema:
    return Schema(kind="JSON", text=json.dumps(text), references=references)


# With another schema beside, each document is checked as a whole.
BESIDE = Reference(name="beside", imported=schema({}))


@settings(max_examples=300)
@given(ROOTS, st.data())
def test_a_document_has_the_verdict_and_the_columns_of_the_validating_library(root: Drawn, data: st.DataObject) -> None:
    dialect = data.draw(st.sampled_from([{}, {"$schema": DRAFT}]))
    text = {**root[0], **dialect, "definitions": {"positive": {"type": "integer", "exclusiveMinimum": 0}}}
    values = pa.array(data.draw(st.lists(rows(root[1]), min_size=1, max_size=6)), pa.binary())
    decoder_of_schema = make_json_schema(DecoderInput(schema(text)))
    expected = make_json_schema(DecoderInput(schema(text, BESIDE))).decode(values)
    assert decoder_of_schema.decode(values) == expected
    alone = [decoder_of_schema.decode(values[row : row + 1]) for row in range(len(values))]
    assert pa.concat_arrays([outcome.column for outcome in alone]).equals(expected.column)


def test_usual_documents_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    [orders] = [kind for kind in kinds(50) if kind.decoder == "json_schema"]
    decoder = make_json_schema(DecoderInput(orders.schema, {1: orders.schema}, True))
    expected = decoder.decode(pa.array(orders.values)).column

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(decoders._DocumentReading, "__call__", refuse)
    assert decoder.decode(pa.array(orders.values)).column.equals(expected)

"""The columns of a JSON Schema.

What a column cannot be (several types, an object without names, a tuple) stays JSON text.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kafka_archiver.decode.fields import field
from kafka_archiver.decode.json_text.columns import DECIMAL, FORMAT, TYPE, TYPES, is_decimal
from kafka_archiver.decode.json_text.nodes import Decimals, Digits, List, Map, Node, Plain, Struct, Text, Times
from kafka_archiver.errors import ConfigError
from kafka_archiver.schemas import Schema

Found = tuple[pa.Field, Node]
_DIGITS = 38
_FORMATS = {"date-time": "timestamp[us]", "date": "date", "uuid": "uuid"}
_NUMBERS = {"double": "float64", "float": "float32", "float64": "float64", "float32": "float32"}
_INTEGERS = ("int8", "int16", "int32", "int64")


def columns_of(schema: Schema, column: str) -> Found:
    """The field of a schema, and what becomes it.

    :raises ConfigError: the schema is not valid, or contains itself.
    """
    try:
        text = json.loads(schema.text)
        return _Documents(schema, text).column(column, text, ())
    except (ValueError, KeyError, TypeError, AttributeError, LookupError) as error:
        raise ConfigError(
            f"schema {schema.fingerprint} is not a JSON Schema with columns: {type(error).__name__}: {error}"
        ) from None


class _Documents:
    """A schema and everything it refers to, by name."""

    def __init__(self, schema: Schema, text: Any) -> None:
        self._texts: dict[str, Any] = {"": text}
        self._add(schema)

    def _add(self, schema: Schema) -> None:
        for reference in schema.references:
            text = json.loads(reference.imported.text)
            self._texts[reference.name] = text
            if isinstance(text, dict) and "$id" in text:
                self._texts[text["$id"]] = text
            self._add(reference.imported)

    def column(self, name: str, part: Any, around: tuple[str, ...], base: str = "") -> Found:
        """:param around: the references that lead here. :param base: the document of `part`."""
        while isinstance(part, Mapping) and "$ref" in part:
            part, base, around = self._follow(str(part["$ref"]), base, around)
        part = _single(part) if isinstance(part, Mapping) else {}
        if "$ref" in part:
            return self.column(name, part, around, base)
        doc = {"doc": str(part.get("description", part.get("title", "")))}
        kind = _kind(part)
        if kind == "object" and part.get("properties"):
            parts = [self.column(n, p, around, base) for n, p in part["properties"].items()]
            try:
                struct = Struct(parts)
            except ValueError as error:
                raise ConfigError(f"JSON Schema: a name cannot be a column: {error}") from None
            return field(name, struct.kind, **doc), struct
        if kind == "object" and isinstance(part.get("additionalProperties"), Mapping):
            inner, node = self.column("value", part["additionalProperties"], around, base)
            mapped = Map(node, inner)
            return field(name, mapped.kind, **doc), mapped
        if kind == "array" and isinstance(part.get("items"), Mapping):
            inner, node = self.column("item", part["items"], around, base)
            listed = List(node, inner)
            return field(name, listed.kind, **doc), listed
        return _plain(name, _column_type(part, kind), part.get(FORMAT, ""), doc)

    def _follow(self, reference: str, base: str, around: tuple[str, ...]) -> tuple[Any, str, tuple[str, ...]]:
        document, _, pointer = reference.partition("#")
        document = document or base
        where = f"{document}#{pointer}"
        if where in around:
            raise ConfigError(
                f"JSON Schema: {reference} contains itself, so it has no columns; set `decode: bytes` and "
                "`content: record`"
            )
        if document not in self._texts:
            raise ConfigError(f"JSON Schema: {reference} is not one of its references ({', '.join(self._texts)})")
        return pointed(self._texts[document], pointer), document, (*around, where)


def pointed(document: Any, pointer: str) -> Any:
    """What a JSON Pointer, as the fragment of a URI, means in a document.

    :raises LookupError: nothing.
    """
    for step in filter(None, unquote(pointer).split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _single(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the alternatives that say null: the one that is left; nothing if there are several."""
    for keyword in ("oneOf", "anyOf", "allOf"):
        if keyword in part and "properties" not in part:
            others = [p for p in part[keyword] if not (isinstance(p, Mapping) and p.get("type") == "null")]
            rest = {key: value for key, value in part.items() if key != keyword}
            return {**rest, **others[0]} if len(others) == 1 and isinstance(others[0], Mapping) else {}
    return part


def _kind(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "")
    if isinstance(kind, list):
        kinds = [k for k in kind if k != "null"]
        kind = kinds[0] if len(kinds) == 1 else ""
    values = part.get("enum", [part["const"]] if "const" in part else [])
    if not kind and values and all(isinstance(value, str) for value in values):
        return "string"
    return str(kind) or ("object" if "properties" in part else "")


def _column_type(part: Mapping[str, Any], kind: str) -> str:
    """The type as a list of columns names it."""
    connect, form = part.get("connect.type", ""), str(part.get("format", ""))
    if TYPE in part:
        return str(part[TYPE])
    if kind == "integer":
        return connect if connect in _INTEGERS else form if form in _INTEGERS else "int64"
    if kind == "number":
        scale = _scale(part.get("multipleOf"))
        return _NUMBERS.get(connect) or _NUMBERS.get(form) or (f"decimal({_DIGITS},{scale})" if scale else "number")
    if kind == "string":
        return "binary" if part.get("contentEncoding") == "base64" else _FORMATS.get(form, "string")
    return "bool" if kind == "boolean" else "json"


def _scale(step: Any) -> int | None:
    """The digits after the point that `multipleOf` allows: 2 for 0.01."""
    return next((n for n in range(1, _DIGITS) if isinstance(step, float) and step == float(f"1e-{n}")), None)


_PLAIN: Mapping[str, tuple[pa.DataType, Any]] = {
    "string": (pa.string(), str),
    "uuid": (pa.string(), str),
    "bool": (pa.bool_(), bool),
    "binary": (pa.binary(), bytes),
    "float32": (pa.float32(), float),
    "float64": (pa.float64(), float),
    **{name: (pa.type_for_alias(name), int) for name in TYPES if "int" in name},
}


def _plain(name: str, kind: str, form: str, doc: Mapping[str, str]) -> Found:
    node: Node
    more = {}
    if kind in _PLAIN:
        node = Plain(*_PLAIN[kind])
        more = {"avro_logicalType": "uuid"} if kind == "uuid" else {}
    elif is_decimal(kind) and (digits := DECIMAL.fullmatch(kind)):
        node = Decimals(pa.decimal128(int(digits[1]), int(digits[2])))
    elif kind == "number":
        node, more = Digits(), {"json": "number"}
    elif kind == "json":
        node, more = Text(), {"json": "any"}
    elif "%Z" in form.replace("%%", ""):
        raise ConfigError(
            f"JSON Schema: the column {name} has the format {form!r}, and %Z reads only UTC, GMT and the names of the "
            "machine's own zone; use %z, which reads offsets such as +0200, or leave the zone out: the time is UTC then"
        )
    elif kind == "date" or kind in TYPES:
        node = Times(pa.date32() if kind == "date" else pa.timestamp(kind[10:-1], "UTC"), form)
    else:
        raise ConfigError(f"JSON Schema: the column {name} has the type {kind!r}, which does not exist")
    return field(name, node.kind, **doc, **more), node

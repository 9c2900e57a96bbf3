"""The columns of a JSON Schema.

What a column cannot be (several types, an object without names, a tuple) stays JSON text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.decode.json_text.columns import DECIMAL, FORMAT, TYPE, TYPES, is_decimal
from kafka_archiver.records.decode.json_text.nodes import (
    ArrowValues,
    Digits,
    Integers,
    JsonDecimals,
    JsonMap,
    JsonNode,
    JsonTexts,
    JsonTimes,
    List,
    Struct,
)
from kafka_archiver.records.fields import field

Found = tuple[pa.Field, JsonNode]
# Alternatives may name the same columns again and again.
_MOST_COLUMNS = 100_000
# A part without any of these says nothing of the type.
_TYPED = frozenset({"type", "$ref", "properties", "items", "enum", "const", "allOf", "anyOf", "oneOf", TYPE})
_DIGITS = 38
_FORMATS = {"date-time": "date-time", "date": "date", "uuid": "uuid"}
_NUMBERS = {"double": "float64", "float": "float32", "float64": "float64", "float32": "float32"}
_INTEGERS = ("int8", "int16", "int32", "int64")


def columns_of(schema: Schema, column: str, rules: int = 2) -> Found:
    """Return the field of a schema, and the node that reads it.

    :param rules: of the plan. 0: the columns are those of an object's `properties`. From 1 on, also those that are
        named beside them: beside a `$ref`, in `allOf`, `oneOf`, `anyOf`, `if`, `then`, `else` and `dependentSchemas`.
        From 2 on, what may hold values of other types than its one part says is JSON text: an array with `prefixItems`,
        an object with `patternProperties` but no `properties`, and a type that is object or another one.
    :raises ConfigError: the schema is not valid, contains itself, or has too many columns.
    """
    try:
        text = json.loads(schema.text)
        return _Documents(schema, text, rules).column(column, SchemaPart(text))
    except (ValueError, KeyError, TypeError, AttributeError, LookupError) as error:
        raise ConfigError(
            f"schema {schema.fingerprint} is not a JSON Schema with columns: {type(error).__name__}: {error}"
        ) from None


class SchemaPart(NamedTuple):
    """A part of a schema. `around`: the references that lead here. `base`: its document."""

    text: Any
    around: tuple[str, ...] = ()
    base: str = ""


class _ContainsItselfError(ConfigError):
    """The part contains itself."""


class _Documents:
    """A schema and everything it refers to, by name."""

    def __init__(self, schema: Schema, text: Any, rules: int) -> None:
        self._texts: dict[str, Any] = {"": text}
        # Its own name means the schema, too.
        self._own_id = str(text.get("$id", "")).removesuffix("#") if isinstance(text, Mapping) else ""
        self._rules, self._columns = rules, 0
        dialect = str(text.get("$schema", "")) if isinstance(text, Mapping) else ""
        self._ref_stands_alone = any(f"draft-0{number}" in dialect for number in (3, 4, 6, 7))
        self._add(schema)

    def _add(self, schema: Schema) -> None:
        for reference in schema.references:
            text = json.loads(reference.imported.text)
            self._texts[reference.name] = text
            if isinstance(text, dict) and "$id" in text:
                self._texts[text["$id"]] = text
            self._add(reference.imported)

    def column(self, name: str, part: SchemaPart, beside: Sequence[SchemaPart] = ()) -> Found:
        """Return the column of a part.

        :param beside: other parts that name properties of the same object.
        """
        self._columns += 1
        if self._columns > _MOST_COLUMNS:
            raise ConfigError(f"JSON Schema: more than {_MOST_COLUMNS:,} columns, with those that alternatives repeat")
        while isinstance(part.text, Mapping) and "$ref" in part.text:
            siblings = {key: value for key, value in part.text.items() if key != "$ref"}
            beside = beside if self._ref_stands_alone else [*beside, part._replace(text=siblings)]
            part = self._follow(str(part.text["$ref"]), part)
        part = part._replace(text=_single(part.text) if isinstance(part.text, Mapping) else {})
        text = part.text
        if "$ref" in text:
            return self.column(name, part, beside)
        doc = {"doc": str(text.get("description", text.get("title", "")))}
        kind = self._kind(text)
        if kind == "object" and text.get("properties"):
            try:
                struct = Struct(self._members(part, beside))
            except ValueError as error:
                raise ConfigError(f"JSON Schema: a name cannot be a column: {error}") from None
            return field(name, struct.kind, **doc), struct
        is_uniform = self._rules < 2 or not text.keys() & {"prefixItems", "patternProperties"}
        if kind == "object" and is_uniform and isinstance(text.get("additionalProperties"), Mapping):
            inner, node = self.column("value", part._replace(text=text["additionalProperties"]))
            mapped = JsonMap(node, inner)
            return field(name, mapped.kind, **doc), mapped
        if kind == "array" and is_uniform and isinstance(text.get("items"), Mapping):
            inner, node = self.column("item", part._replace(text=text["items"]))
            listed = List(node, inner)
            return field(name, listed.kind, **doc), listed
        return _plain(name, _column_type(text, kind), text.get(FORMAT, ""), doc)

    def _kind(self, part: Mapping[str, Any]) -> str:
        kind = part.get("type", "")
        if isinstance(kind, list):
            kinds = [k for k in kind if k != "null"]
            kind = kinds[0] if len(kinds) == 1 else ""
            if self._rules > 1 and kinds[1:]:
                return ""
        values = part.get("enum", [part["const"]] if "const" in part else [])
        if not kind and values and all(isinstance(value, str) for value in values):
            return "string"
        return str(kind) or ("object" if "properties" in part else "")

    def _members(self, part: SchemaPart, beside: Sequence[SchemaPart]) -> list[Found]:
        """Return the columns of an object: of its `properties` first, then those that are named elsewhere."""
        own = {name: part._replace(text=text) for name, text in part.text["properties"].items()}
        more_parts: dict[str, list[SchemaPart]] = {}
        if self._rules:
            done: set[str] = set()
            other_keywords = {key: value for key, value in part.text.items() if key != "properties"}
            for source in (part._replace(text=other_keywords), *beside):
                for name, named in self._named(source, done):
                    more_parts.setdefault(name, []).append(named)
        members = [self.column(name, named, more_parts.pop(name, ())) for name, named in own.items()]
        return [*members, *(self._agreed(name, parts) for name, parts in more_parts.items())]

    def _named(self, part: SchemaPart, done: set[str]) -> Iterator[tuple[str, SchemaPart]]:
        """Yield the properties that a part names, and those of the parts in it that mean the same object.

        :param done: the references that were followed; changed here.
        """
        if not isinstance(part.text, Mapping):
            return
        if "$ref" in part.text:
            where = self._where(str(part.text["$ref"]), part)
            if where not in done:
                done.add(where)
                yield from self._named(self._follow(str(part.text["$ref"]), part), done)
            if self._ref_stands_alone:
                return
        for name, text in part.text.get("properties", {}).items():
            if text is not False:
                yield name, part._replace(text=text)
        for text in _same_object(part.text):
            yield from self._named(part._replace(text=text), done)

    def _agreed(self, name: str, parts: Sequence[SchemaPart]) -> Found:
        """Return the column that takes what any part allows: JSON text if they differ, or contain themselves."""
        typed_parts = [part for part in parts if not isinstance(part.text, Mapping) or part.text.keys() & _TYPED]
        text = _plain(name, "json", "", {})
        try:
            columns = [self.column(name, part) for part in typed_parts]
            kinds = [column.type for column, _ in columns]
            if not kinds or not (all(map(pa.types.is_struct, kinds)) or all(kind == kinds[0] for kind in kinds)):
                return text
            if any(isinstance(node, JsonTexts) for _, node in columns):
                return text
            return columns[0] if len(typed_parts) == 1 else self.column(name, typed_parts[0], typed_parts[1:])
        except _ContainsItselfError:
            return text

    def _where(self, reference: str, part: SchemaPart) -> str:
        document, _, pointer = reference.partition("#")
        document = "" if document and document == self._own_id else document or part.base
        return f"{document}#{pointer}"

    def _follow(self, reference: str, part: SchemaPart) -> SchemaPart:
        where = self._where(reference, part)
        document, _, pointer = where.partition("#")
        if where in part.around:
            raise _ContainsItselfError(
                f"JSON Schema: {reference} contains itself, so it has no columns; set `decode: bytes` and "
                "`content: record`"
            )
        if document not in self._texts:
            raise ConfigError(f"JSON Schema: {reference} is not one of its references ({', '.join(self._texts)})")
        return SchemaPart(pointed(self._texts[document], pointer), (*part.around, where), document)


def _same_object(text: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a part that mean the same object."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from text.get(keyword, ())
    yield from (text[keyword] for keyword in ("if", "then", "else") if keyword in text)
    for keyword in ("dependentSchemas", "dependencies"):
        yield from text.get(keyword, {}).values()


def pointed(document: Any, pointer: str) -> Any:
    """Return the part of a document to which the fragment of a URI points: a JSON Pointer, or the name of an anchor.

    :raises LookupError: it points to nothing.
    """
    if pointer and not pointer.startswith("/"):
        return _anchored(document, unquote(pointer))
    for step in filter(None, unquote(pointer).split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _anchored(document: Any, name: str) -> Any:
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            anchors = (part.get("$anchor"), part.get("$dynamicAnchor"), str(part.get("$id", "")).partition("#")[2])
            if name in anchors:
                return part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    raise LookupError(f"no anchor {name}")


def _single(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the alternatives that say null: the one that is left; nothing if there are several."""
    for keyword in ("oneOf", "anyOf", "allOf"):
        if keyword in part and "properties" not in part:
            alternatives = [p for p in part[keyword] if not (isinstance(p, Mapping) and p.get("type") == "null")]
            siblings = {key: value for key, value in part.items() if key != keyword}
            return (
                {**siblings, **alternatives[0]}
                if len(alternatives) == 1 and isinstance(alternatives[0], Mapping)
                else {}
            )
    return part


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
}
_INTEGER_KINDS = {name: pa.type_for_alias(name) for name in TYPES if "int" in name}


def _plain(name: str, kind: str, form: str, doc: Mapping[str, str]) -> Found:
    node: JsonNode
    more = {}
    if kind in _PLAIN:
        node = ArrowValues(*_PLAIN[kind])
        more = {"avro_logicalType": "uuid"} if kind == "uuid" else {}
    elif kind in _INTEGER_KINDS:
        node = Integers(_INTEGER_KINDS[kind])
    elif is_decimal(kind) and (digits := DECIMAL.fullmatch(kind)):
        node = JsonDecimals(pa.decimal128(int(digits[1]), int(digits[2])))
    elif kind == "number":
        node, more = Digits(), {"json": "number"}
    elif kind == "json":
        node, more = JsonTexts(), {"json": "any"}
    elif "%Z" in form.replace("%%", ""):
        raise ConfigError(
            f"JSON Schema: the column {name} has the format {form!r}, and %Z reads only UTC, GMT and the names of the "
            "machine's own zone; use %z, which reads offsets such as +0200, or leave the zone out: the time is UTC then"
        )
    elif kind == "date-time":
        node = JsonTimes(pa.timestamp("us", "UTC"), form, rfc3339=True)
    elif kind == "date" or kind in TYPES:
        node = JsonTimes(pa.date32() if kind == "date" else pa.timestamp(kind[10:-1], "UTC"), form)
    else:
        raise ConfigError(f"JSON Schema: the column {name} has the type {kind!r}, which does not exist")
    return field(name, node.kind, **doc, **more), node

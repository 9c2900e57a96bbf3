"""Parses Avro schemas.

https://avro.apache.org/docs/1.12.0/specification/
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastavro.schema import SchemaParseException, UnknownType, parse_schema

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import Schema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
# The types that each logical type may annotate; on others it means nothing.
_LOGICAL = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "duration": ("fixed",),
    "date": ("int",),
    "time-millis": ("int",),
    **dict.fromkeys(("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos"), ("long",)),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"), ("long",)),
}
_SIZES = {"uuid": 16, "duration": 12}

# A schema names its types in a few lines, and its columns are each of them in each place.
_MOST_TYPES = 20_000


@dataclass(frozen=True)
class Type:
    """An Avro type. `definition`: its attributes as JSON; `parts`: the types of items, values, branches or fields."""

    kind: str
    definition: Mapping[str, Any]
    parts: tuple["Type", ...] = ()

    @cached_property
    def name(self) -> str:
        """The full name of a record, an enum or a fixed; empty for others."""
        return str(self.definition.get("name", ""))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The full names under which a writer may know this type: its own and its aliases."""
        space = self.name.rpartition(".")[0]
        aliases = self.definition.get("aliases", ())
        return (self.name, *(a if "." in a or not space else f"{space}.{a}" for a in aliases))

    @cached_property
    def logical(self) -> str:
        """The logical type; empty if there is none that is valid."""
        logical = str(self.definition.get("logicalType", ""))
        if self.kind not in _LOGICAL.get(logical, ()):
            return ""
        return logical if logical == "decimal" or self.definition.get("size") in (None, _SIZES.get(logical)) else ""

    @cached_property
    def doc(self) -> str:
        return str(self.definition.get("doc", ""))

    @cached_property
    def fields(self) -> tuple[tuple[Mapping[str, Any], "Type"], ...]:
        """The fields of a record: attributes and type."""
        return tuple(zip(self.definition["fields"], self.parts, strict=True))

    def __str__(self) -> str:
        return self.name or self.logical or self.kind


def parse(schema: Schema) -> Type:
    """Parse a schema with everything it refers to.

    :raises ConfigError: it is not an Avro schema, or a type contains itself.
    """
    names: dict[str, Any] = {}
    try:
        _define(schema, names, set())
        return _TypeParser(names).typed(_parsed(schema, names), ())
    except RecursionError:
        raise ConfigError(f"schema {schema.fingerprint} is not an Avro schema: it is nested too deep") from None
    except (SchemaParseException, UnknownType, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"schema {schema.fingerprint} is not an Avro schema: {type(error).__name__}: {error}"
        ) from None


def _define(schema: Schema, names: dict[str, Any], done: set[str]) -> None:
    """Define the types that a schema imports, each once."""
    for reference in schema.references:
        _define(reference.imported, names, done)
        if reference.imported.fingerprint not in done:
            done.add(reference.imported.fingerprint)
            _parsed(reference.imported, names)


def _parsed(schema: Schema, names: dict[str, Any]) -> Any:
    """Return the schema as fastavro has it. A default may be wrong: only a reader without the field needs it."""
    plain = _without_invalid_decimals(json.loads(schema.text))
    return parse_schema(plain, names, _ignore_default_error=True)


def _without_invalid_decimals(schema: Any) -> Any:
    """Return the definition with the plain type for each `decimal` that is not valid, as the specification asks."""
    if isinstance(schema, list):
        return [_without_invalid_decimals(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    invalid = schema.get("logicalType") == "decimal" and not _is_decimal(schema)
    return {
        name: value if name == "default" else _without_invalid_decimals(value)
        for name, value in schema.items()
        if not (invalid and name in ("logicalType", "precision", "scale"))
    }


def _is_decimal(definition: Mapping[str, Any]) -> bool:
    kind, precision, scale = definition.get("type"), _count(definition, "precision"), _count(definition, "scale")
    if kind not in ("bytes", "fixed") or not 0 <= scale <= precision or not precision:
        return False
    return kind == "bytes" or precision <= math.log10(2) * (8 * max(_count(definition, "size"), 1) - 1)


def _count(definition: Mapping[str, Any], name: str) -> int:
    """Return the attribute; 0 if there is none, -1 if it is no number of at least 0."""
    value = definition.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else -1


class _TypeParser:
    """Makes the types of definitions; a named one for each place that has it.

    :param names: the definitions by name.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names, self._count = names, 0

    def typed(self, definition: Any, around: tuple[str, ...]) -> Type:
        """Return the type of a definition.

        :param around: the names of the types that contain this one.
        """
        self._count += 1
        if self._count > _MOST_TYPES:
            raise ConfigError(f"an Avro schema has more than {_MOST_TYPES:,} types, each counted in each of its places")
        if isinstance(definition, list):
            return Type("union", {}, tuple(self.typed(branch, around) for branch in definition))
        if isinstance(definition, str):
            definition = {"type": definition} if definition in PRIMITIVES else self._names[definition]
        kind = definition["type"]
        if isinstance(kind, list | dict):
            return self.typed(kind, around)
        if kind in ("record", "error"):
            name = definition["name"]
            if name in around:
                raise ConfigError(
                    f"Avro type {name} contains itself, so it has no columns; set `decode: bytes` and `content: record`"
                )
            return Type(
                "record",
                definition,
                tuple(self.typed(field["type"], (*around, name)) for field in definition["fields"]),
            )
        if kind == "array":
            return Type(kind, definition, (self.typed(definition["items"], around),))
        if kind == "map":
            return Type(kind, definition, (self.typed(definition["values"], around),))
        if kind in PRIMITIVES or kind == "enum" or (kind == "fixed" and definition["size"] >= 0):
            return Type(kind, definition)
        return self.typed({**self._names[kind], **{k: v for k, v in definition.items() if k == "doc"}}, around)

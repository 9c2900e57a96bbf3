"""The schema of Avro objects."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.formats.shared.plain_types import LOGICAL
from kafka_archiver.records.formats.shared.records import COLUMNS, HEADERS, kafkas, kafkas_as

_NULL = "null"
_TYPES: dict[pa.DataType, Any] = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()), "int"),
    **dict.fromkeys((pa.int64(), pa.uint32()), "long"),
    # Avro has no unsigned numbers.
    pa.uint64(): {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
    pa.time64("us"): {"type": "long", "logicalType": "time-micros"},
    # Not in the specification: to a reader it is a long.
    pa.time64("ns"): {"type": "long", "logicalType": "time-nanos"},
    pa.uuid(): {"type": "string", "logicalType": "uuid"},
}
_UNITS = {"ms": "millis", "us": "micros", "ns": "nanos"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": [_NULL, "bytes"]}],
}
_RECORD = "kafka_archiver.Record"
_KAFKA_RECORD = "A Kafka record. timestamp: milliseconds since 1970, -1 for none. timestamp_type: 0 create, 1 append."
# Kafka's columns as Avro stores them.
_KAFKAS = {
    field.name: field
    for field in (
        *RECORD,
        *COLUMNS,
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("headers", pa.list_(pa.field("element", HEADERS.value_type, nullable=False)), nullable=False),
    )
}


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema with Kafka's columns as Avro stores them."""
    return kafkas_as(schema, _KAFKAS)


def schema_of(schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema of what `stored` gives, as JSON values.

    Records, enums and fixed have the names of the decoded schema. What has no name, or shares it with another type, is
    named after the columns that contain it.

    :raises ConfigError: Avro cannot have a column of this type or name.
    """
    about = _about(schema.metadata)
    name = about["avro.name"] if _is_name(about.get("avro.name", "")) else _RECORD
    doc = about.get("doc") if schema.metadata else _KAFKA_RECORD
    path = tuple(name.split("."))
    types = _ColumnTypes(path)
    fields = [types.field(field, path) for field in schema]
    return {"type": "record", **_spelt(path), **({"doc": doc} if doc else {}), "fields": fields}


def symbols(field: pa.Field) -> list[str] | None:
    """The symbols of a string column that is an enum; None if Avro cannot have such an enum, or it is none."""
    symbols_text = _about(field.metadata).get("avro.symbols")
    if symbols_text is None or not pa.types.is_string(field.type):
        return None
    names: list[str] = json.loads(symbols_text)
    return names if len(set(names)) == len(names) and all(map(_NAME.fullmatch, names)) else None


def entries(kind: pa.DataType) -> pa.DataType:
    """A map as a list of keys and values: in bytes an Avro map is one."""
    pair = pa.struct([kind.key_field.with_nullable(False), kind.item_field])
    return pa.list_(pa.field("entries", pair, nullable=False))


class _ColumnTypes:
    """Avro types of columns. A name may be defined only once in a file, so this remembers the definitions.

    :param record: the name of the record, which is that of the columns' path too.
    """

    def __init__(self, record: tuple[str, ...]) -> None:
        self._depth = len(record)
        # By name: the column that defines it; None for a name that is taken.
        self._defined: dict[str, pa.Field | None] = {".".join(record): None, ".".join((*record[:-1], "Header")): None}

    def field(self, field: pa.Field, path: tuple[str, ...]) -> dict[str, Any]:
        """A field of a record.

        :param path: the names that contain it, the namespace's first.
        """
        if not _NAME.fullmatch(field.name):
            raise ConfigError(
                f"store.format: avro takes column names of ASCII letters, digits and _, found {field.name!r}; "
                "rename the column, or choose parquet"
            )
        doc = _about(field.metadata).get("doc")
        kind = {"type": "array", "items": _HEADER} if kafkas(field) == "headers" else self._type(field, path)
        return {"name": field.name, "type": kind, **({"doc": doc} if doc else {})}

    def _type(self, field: pa.Field, path: tuple[str, ...], item: bool = False) -> Any:
        value_type = self._value_type(field, path if item else (*path, field.name))
        return [_NULL, value_type] if field.nullable else value_type

    def _value_type(self, field: pa.Field, path: tuple[str, ...]) -> Any:
        kind = field.type
        if (names := symbols(field)) is not None:
            return self._named(field, path, lambda _: {"type": "enum", "symbols": names})
        logical = (
            {"logicalType": logical_name} if (logical_name := (field.metadata or {}).get(LOGICAL, b"").decode()) else {}
        )
        if logical and pa.types.is_string(kind):
            return {"type": "string", **logical}
        if kind in _TYPES:
            return _TYPES[kind]
        if pa.types.is_timestamp(kind) and kind.unit in _UNITS:
            local = "" if kind.tz else "local-"
            return {"type": "long", "logicalType": f"{local}timestamp-{_UNITS[kind.unit]}"}
        if pa.types.is_decimal(kind):
            return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        if pa.types.is_fixed_size_binary(kind):
            return self._named(field, path, lambda _: {"type": "fixed", "size": kind.byte_width, **logical})
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return {"type": "array", "items": self._type(kind.value_field, path, item=True)}
        if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
            return {"type": "map", "values": self._type(kind.item_field, path, item=True)}
        if pa.types.is_map(kind):
            return self._value_type(pa.field(field.name, entries(kind)), path)
        if pa.types.is_struct(kind) and kind.num_fields:
            return self._named(
                field, path, lambda at: {"type": "record", "fields": [self.field(child, at) for child in kind]}
            )
        raise ConfigError(
            f"store.format: avro has no type for the column {'.'.join(path[self._depth :])} of type {kind}"
        )

    def _named(
        self, field: pa.Field, path: tuple[str, ...], define: Callable[[tuple[str, ...]], dict[str, Any]]
    ) -> Any:
        """A definition with its name, or the name alone if it is defined already.

        :param define: the definition; takes the path.
        """
        name = _about(field.metadata).get("avro.name", "")
        # A name without a namespace would get that of the record around it.
        if "." not in name or not _is_name(name) or not _same(self._defined.get(name, field), field):
            name = ".".join(path)
            while name in self._defined:
                name += "_"
        elif name in self._defined:
            return name
        self._defined[name] = field
        kind, *attributes = define(path).items()
        return dict([kind, *_spelt(tuple(name.split("."))).items(), *attributes])


def _same(left: pa.Field | None, right: pa.Field) -> bool:
    """Return True if two columns have the same definition: type, names, documentation and symbols."""
    return left is not None and left.type.equals(right.type, check_metadata=True) and symbols(left) == symbols(right)


def _is_name(name: str) -> bool:
    return all(map(_NAME.fullmatch, name.split(".")))


def _spelt(path: tuple[str, ...]) -> dict[str, str]:
    return {"name": path[-1], **({"namespace": ".".join(path[:-1])} if path[1:] else {})}


def _about(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in (metadata or {}).items()}

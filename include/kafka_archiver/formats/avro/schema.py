"""The schema of Avro objects."""

import re
from typing import Any

import pyarrow as pa

from kafka_archiver.errors import ConfigError
from kafka_archiver.formats.base import RECORD
from kafka_archiver.formats.shared.records import COLUMNS, HEADERS, is_kafkas

_NULL = "null"
_TYPES: dict[pa.DataType, Any] = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
}
_UNITS = {"ms": "millis", "us": "micros"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": [_NULL, "bytes"]}],
}
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
    return pa.schema([_KAFKAS[field.name] if is_kafkas(field) else field for field in schema])


def schema_of(schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema of what `stored` gives, as JSON values.

    :raises ConfigError: Avro cannot have a column of this type or name.
    """
    return {
        "type": "record",
        "name": "Record",
        "namespace": "kafka_archiver",
        "doc": "A Kafka record. timestamp: milliseconds since 1970, -1 for none. timestamp_type: 0 create, 1 append.",
        "fields": [_field(field, ("kafka_archiver", "Record")) for field in schema],
    }


def _field(field: pa.Field, path: tuple[str, ...]) -> dict[str, Any]:
    if not _NAME.fullmatch(field.name):
        raise ConfigError(
            f"store.format: avro takes column names of ASCII letters, digits and _, found {field.name!r}; "
            "rename the column, or choose parquet"
        )
    if field.equals(_KAFKAS["headers"]):
        return {"name": field.name, "type": {"type": "array", "items": _HEADER}}
    return {"name": field.name, "type": _type(field, (*path, field.name))}


def _type(field: pa.Field, path: tuple[str, ...]) -> Any:
    found = _value_type(field.type, path)
    return [_NULL, found] if field.nullable else found


def _value_type(kind: pa.DataType, path: tuple[str, ...]) -> Any:
    """:param path: makes the names of records unique within the file."""
    if kind in _TYPES:
        return _TYPES[kind]
    if pa.types.is_timestamp(kind) and kind.unit in _UNITS:
        local = "" if kind.tz else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-{_UNITS[kind.unit]}"}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _type(kind.value_field, path)}
    if pa.types.is_struct(kind) and kind.num_fields:
        fields = [_field(field, path) for field in kind]
        return {"type": "record", "name": path[-1], "namespace": ".".join(path[:-1]), "fields": fields}
    raise ConfigError(f"store.format: avro has no type for the column {'.'.join(path[2:])} of type {kind}")

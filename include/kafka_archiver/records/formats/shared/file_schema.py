"""Columns by what a file says of itself."""

import pyarrow as pa

from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.formats.shared.columns import with_source

_BYTES = ("key", "value")


def with_kafkas(file_schema: pa.Schema) -> pa.Schema:
    """The columns of a file, Kafka's as those of an object, whatever prefix their names have.

    Kafka's columns stand first, so the first one tells the prefix. No decoded column is required.
    """
    first = [
        (f.name, name) for f in list(file_schema)[:1] for name in RECORD.names if not f.nullable and _is_kafkas(f, name)
    ]
    if not first:
        return file_schema
    prefix = first[0][0].removesuffix(first[0][1])

    def changed(field: pa.Field) -> pa.Field:
        name = next((name for name in RECORD.names if prefix + name == field.name), None)
        if name is None or not _is_kafkas(field, name):
            return field
        return with_source(name, RECORD.field(name).with_name(field.name))

    same = pa.schema(map(changed, file_schema))
    return RECORD if same.equals(RECORD) else same


def _is_kafkas(field: pa.Field, name: str) -> bool:
    """Return True if a format stores Kafka's column of that name like this, apart from a prefix."""
    kind, kafka = field.type, RECORD.field(name)
    if not field.name.endswith(name) or field.nullable != (name in _BYTES):
        return False
    if name == "timestamp":
        return bool(kind == pa.timestamp("ms", "UTC"))
    if name == "headers":
        return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type))
    return bool(kind == kafka.type)

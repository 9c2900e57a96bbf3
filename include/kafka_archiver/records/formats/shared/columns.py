"""The columns of an object: Kafka's, and those of a decoded key and value. Pure.

Each field's metadata says which column of a batch it is made of (`SOURCE`), so that a value may have a field `offset`.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.settings import Content
from kafka_archiver.records.formats.base import RECORD, VALUE
from kafka_archiver.records.formats.shared.names import require_distinct, require_not_of_paths
from kafka_archiver.records.formats.shared.plain_types import plain

# In a field's metadata: the column of a batch that it is made of, a column of `RECORD` or one of the two below.
SOURCE = b"kafka_archiver.source"
# The columns that the stage `decode` adds: what the decoders give.
KEY, VALUE_DECODED = "key_decoded", "value_decoded"
# Before the name of a decoded header, in the name of its column.
HEADER = "headers."
_OTHER = re.compile(r"[^A-Za-z0-9_]")
# A field of the struct `value_decoded`.
_FIELD = VALUE_DECODED + ".*"
_BYTES = ("key", "value")


def schema_of(
    content: Content,
    metadata: Collection[str] = (),
    prefix: str = "",
    key: pa.Field | None = None,
    value: pa.Field | None = None,
    headers: Mapping[str, pa.Field] = MappingProxyType({}),
    rename: Mapping[str, str] = MappingProxyType({}),
    of_paths: Collection[str] = (),
) -> pa.Schema:
    """The columns of an object, in order: Kafka's, then the decoded key, the decoded headers, and the decoded value.

    A value that is a struct gives a column for each of its fields; any other value is the column `value`, or
    `value_decoded` beside Kafka's. A decoded key is the column `key` of `metadata`; with `content: both` it is
    `key_decoded`. A decoded header is `header_` and its name, with _ for other characters than letters, digits and _.
    All decoded columns are nullable: they are null for a record whose value is null.

    :param metadata: the columns of Kafka with `content: value`; the other contents have them all.
    :param prefix: precedes the names of Kafka's columns, of `key_decoded` and of headers.
    :param key: the decoder's field; None if the key is not decoded. `value` likewise.
    :param headers: the decoders' fields by the columns of a batch, `headers.<name>`.
    :param rename: new names of the value's columns. :param of_paths: the columns that readers take from paths.
    :raises ConfigError: two columns have one name; nothing is decoded for what only decoded records can have; or no
        format has a column of this type.
    """
    if content == "record" or (content == "value" and value is None):
        if metadata:
            raise ConfigError(
                "store.metadata: it adds columns to a decoded value, found "
                + ("`store.content: record`, which has them all" if content == "record" else "a value of bytes")
                + "; remove it, or set `source.value.decode` and `store.content: value`"
            )
        return RECORD if content == "record" else VALUE
    if key is None and value is None and not headers:
        raise ConfigError(
            "store.content: both stores decoded columns beside Kafka's, but no key, value or header is decoded; "
            "set `source.value.decode`, or choose `store.content: record`"
        )
    has_record_columns = content == "both"
    kafkas = [
        with_source(name, RECORD.field(name).with_name(prefix + name))
        for name in RECORD.names
        if has_record_columns or name in metadata
    ]
    if key is not None and has_record_columns:
        kafkas.append(_decoded(KEY, key, prefix + KEY))
    elif key is not None:
        kafkas = [_decoded(KEY, key, f.name) if f.name == prefix + "key" else f for f in kafkas]
    for name, field in headers.items():
        kafkas.append(_decoded(name, field, f"{prefix}header_{_OTHER.sub('_', name.removeprefix(HEADER))}"))
    decoded: list[pa.Field] = []
    if value is not None and pa.types.is_struct(value.type):
        decoded = [_decoded(_FIELD, field, rename.get(field.name, field.name)) for field in value.type]
    elif value is not None:
        decoded = [_decoded(VALUE_DECODED, value, VALUE_DECODED if has_record_columns else "value")]
    require_distinct(kafkas, decoded, prefix)
    require_not_of_paths(decoded, rename, of_paths)
    about = value.metadata if value is not None and pa.types.is_struct(value.type) else None
    return pa.schema([*kafkas, *decoded], metadata=about)


def source(field: pa.Field) -> str | None:
    """The column of a batch that a field of `schema_of` is made of; None for any other field."""
    origin = (field.metadata or {}).get(SOURCE)
    return None if origin is None else origin.decode()


def with_source(name: str, field: pa.Field) -> pa.Field:
    """The field with its source."""
    return field.with_metadata({**(field.metadata or {}), SOURCE: name.encode()})


def needed(schema: pa.Schema) -> list[str]:
    """The columns that a batch needs for the objects of a schema, in the order of `RECORD`, the decoded ones last."""
    origins = [source(field) or field.name for field in schema]
    needed_names = {*(VALUE_DECODED if name == _FIELD else name for name in origins), "offset", "timestamp"}
    headers = [name for name in origins if name.startswith(HEADER)]
    return [*(name for name in (*RECORD.names[2:], KEY, VALUE_DECODED) if name in needed_names), *headers]


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of a schema of `schema_of`, except topic and partition, under their names.

    :param batch: has the columns that `needed` names. Where the value is null, its columns are null.
    """
    value = batch.column(VALUE_DECODED) if VALUE_DECODED in batch.schema.names else None
    children = iter(value.flatten() if value is not None and pa.types.is_struct(value.type) else ())
    columns = {}
    for field in schema:
        name = source(field) or field.name
        if name == _FIELD:
            columns[field.name] = next(children)
        elif name not in RECORD.names[:2]:
            columns[field.name] = batch.column(name)
    return pa.RecordBatch.from_pydict(columns)


def _decoded(name: str, field: pa.Field, called: str) -> pa.Field:
    return with_source(name, plain(field).with_name(called).with_nullable(True))


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

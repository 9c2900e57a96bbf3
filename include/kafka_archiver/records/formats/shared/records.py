"""Batches as Avro and Parquet hold them, for any variant of the types that a reader gives."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import PLACE, RECORD
from kafka_archiver.records.formats.shared.columns import source, with_source
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as

# Large variants: a row group may exceed 32-bit offsets.
HEADERS = pa.list_(
    pa.struct([pa.field("key", pa.large_string(), nullable=False), pa.field("value", pa.large_binary())])
)
# The columns of `RECORD` except `PLACE`.
COLUMNS = pa.schema(
    [RECORD.field(name) for name in ("offset", "timestamp", "timestamp_type")]
    + [pa.field("key", pa.large_binary()), pa.field("value", pa.large_binary())]
    + [pa.field("headers", HEADERS, nullable=False)]
)
# Values at a time, and bytes of columns.
_CELLS, _BYTES = 50_000, 4 << 20


def kafkas(field: pa.Field) -> str | None:
    """The column of `RECORD` that the field is, whatever its name; None for any other. A format stores such a column
    in the same way in every schema. A field without a source is one of `RECORD` if its name and type are.
    """
    name = source(field)
    if name is None:
        return field.name if field.name in RECORD.names and RECORD.field(field.name).equals(field) else None
    return name if name in RECORD.names else None


def is_place(field: pa.Field) -> bool:
    """Return True if the field is Kafka's topic or partition, which the target has."""
    return kafkas(field) in PLACE


def kafkas_as(schema: pa.Schema, stored: Mapping[str, pa.Field]) -> pa.Schema:
    """The schema with Kafka's columns as a format stores them; their names stay, and their source is said."""

    def changed(field: pa.Field) -> pa.Field:
        name = kafkas(field)
        return field if name is None else with_source(name, stored[name].with_name(field.name))

    return pa.schema(list(map(changed, schema)), metadata=schema.metadata)


def encoder_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a schema that batches have, with the types in which encoders hold them."""
    brought = [field for field in schema if not is_place(field)]
    return bare(kafkas_as(pa.schema(brought), {field.name: field for field in COLUMNS}))


def normalised(batch: pa.RecordBatch, columns: pa.Schema = COLUMNS) -> pa.RecordBatch:
    """The batch with these columns and types. Null headers become empty lists.

    :param columns: as `encoder_schema` gives them.
    :raises IntegrityError: the batch has no such column, or its values do not fit.
    """
    batch = seen_as(batch, bare(batch.schema))
    try:
        arrays = [_as(batch.column(field.name), field.type) for field in columns]
    except (KeyError, pa.ArrowException) as error:
        raise IntegrityError(f"the records do not fit the object's schema: {error}") from error
    for at, field in enumerate(columns):
        if arrays[at].null_count and field.type.equals(HEADERS) and not field.nullable:
            arrays[at] = pc.coalesce(arrays[at], pa.scalar([], HEADERS))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # A cast to the same type has a purpose: it finds nulls in nested fields that are not nullable.
    return values if values.type == kind and not _has_required(kind) else values.cast(kind)


@cache
def _has_required(kind: pa.DataType) -> bool:
    """Return True if a nested type has a field that is not nullable, as each map has."""
    if pa.types.is_map(kind):
        return True
    fields = [kind.field(place) for place in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return any(not field.nullable or _has_required(field.type) for field in fields)


def some_rows(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices whose text fits memory: it is a multiple of the columns."""
    rows = max(1, min(_CELLS // max(1, _leaves(batch.schema)), batch.num_rows * _BYTES // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _leaves(fields: Iterable[pa.Field]) -> int:
    return sum(_leaves(f.type) if pa.types.is_struct(f.type) else 1 for f in fields)

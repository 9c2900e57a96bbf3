"""Batches as Avro and Parquet hold them, for any variant of the types that a reader gives."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import PLACE, RECORD

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


# Python objects at a time, each about 2 KB of memory.
_OBJECTS = 2000


def is_kafkas(field: pa.Field) -> bool:
    """Whether the field is a column of `RECORD`, by name and type. A format stores such a column in the same way in
    every schema."""
    return field.name in RECORD.names and RECORD.field(field.name).equals(field)


def is_place(field: pa.Field) -> bool:
    """Whether the field is Kafka's topic or partition, which the target has."""
    return field.name in PLACE and is_kafkas(field)


def held(schema: pa.Schema) -> pa.Schema:
    """The columns of a schema that batches have, with the types in which encoders hold them."""
    return pa.schema([COLUMNS.field(f.name) if is_kafkas(f) else f for f in schema if not is_place(f)])


def normalised(batch: pa.RecordBatch, columns: pa.Schema = COLUMNS) -> pa.RecordBatch:
    """The batch with these columns and types. Null headers become empty lists.

    :param columns: as `held` gives them.
    :raises IntegrityError: the batch has no such column, or its values do not fit.
    """
    try:
        # A cast to the same type has a purpose: it finds nulls in nested fields that are not nullable.
        arrays = [batch.column(field.name).cast(field.type) for field in columns]
    except (KeyError, pa.ArrowException) as error:
        raise IntegrityError(f"the records do not fit the object's schema: {error}") from error
    at = columns.get_field_index("headers")
    if at >= 0 and columns.field(at).equals(COLUMNS.field("headers")) and arrays[at].null_count:
        arrays[at] = pc.coalesce(arrays[at], pa.scalar([], HEADERS))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def some_objects(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices of at most `_OBJECTS` Python objects. Each record and each header is one object."""
    counts = np.ones(batch.num_rows, np.int64)
    for values in batch.columns:
        if pa.types.is_list(values.type):
            counts += values.value_lengths().fill_null(0).to_numpy()
    objects = np.cumsum(counts)
    start = 0
    while start < batch.num_rows:
        before = objects[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(objects, before + _OBJECTS, side="right")))
        yield batch.slice(start, end - start)
        start = end

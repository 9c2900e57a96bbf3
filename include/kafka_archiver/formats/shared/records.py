"""Batches as the formats of columns hold them, whatever variant of the types they came in."""

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import PLACE, RECORD

# Large variants, so that no batch and no row group is too big for 32-bit positions.
HEADERS = pa.list_(
    pa.struct([pa.field("key", pa.large_string(), nullable=False), pa.field("value", pa.large_binary())])
)
# Those of `RECORD`.
COLUMNS = pa.schema(
    [RECORD.field(name) for name in ("offset", "timestamp", "timestamp_type")]
    + [pa.field("key", pa.large_binary()), pa.field("value", pa.large_binary())]
    + [pa.field("headers", HEADERS, nullable=False)]
)


def is_kafkas(field: pa.Field) -> bool:
    """Whether it is a column of `RECORD`, and not only called like one. Each format stores such a column in one way,
    whatever stands beside it."""
    return field.name in RECORD.names and RECORD.field(field.name).equals(field)


def is_place(field: pa.Field) -> bool:
    """Whether it is Kafka's topic or partition, which the target says."""
    return field.name in PLACE and is_kafkas(field)


def held(schema: pa.Schema) -> pa.Schema:
    """The columns of a schema that batches bring, with the types in which they are held."""
    return pa.schema([COLUMNS.field(f.name) if is_kafkas(f) else f for f in schema if not is_place(f)])


def normalised(batch: pa.RecordBatch, columns: pa.Schema = COLUMNS) -> pa.RecordBatch:
    """The batch with these columns and types: missing headers become empty lists.

    :param columns: as `held` gives them.
    :raises IntegrityError: the batch lacks one, or its values do not fit.
    """
    try:
        # Also of a type to itself: it finds the nulls inside of values that have none by the schema.
        arrays = [batch.column(field.name).cast(field.type) for field in columns]
    except (KeyError, pa.ArrowException) as error:
        raise IntegrityError(f"the records are not of the object's schema: {error}") from error
    at = columns.get_field_index("headers")
    if at >= 0 and columns.field(at).equals(COLUMNS.field("headers")) and arrays[at].null_count:
        arrays[at] = pc.coalesce(arrays[at], pa.scalar([], HEADERS))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)

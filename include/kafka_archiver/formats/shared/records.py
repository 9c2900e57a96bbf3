"""Records as every format of `content: record` sees them, whatever variant of the types they came in."""

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import RECORD

# Large variants, so that no batch and no row group is too big for 32-bit positions.
HEADERS = pa.list_(
    pa.struct([pa.field("key", pa.large_string(), nullable=False), pa.field("value", pa.large_binary())])
)
COLUMNS = pa.schema(
    [RECORD.field(name) for name in ("offset", "timestamp", "timestamp_type")]
    + [pa.field("key", pa.large_binary()), pa.field("value", pa.large_binary())]
    + [pa.field("headers", HEADERS, nullable=False)]
)


def normalised(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the columns and types of `COLUMNS`: missing headers become empty lists."""
    columns = [batch.column(name).cast(COLUMNS.field(name).type) for name in COLUMNS.names]
    if columns[-1].null_count:
        columns[-1] = pc.coalesce(columns[-1], pa.scalar([], HEADERS))
    return pa.RecordBatch.from_arrays(columns, schema=COLUMNS)

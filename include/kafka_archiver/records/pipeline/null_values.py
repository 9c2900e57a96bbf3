"""Records whose value is null: `policies.null_value: skip` leaves them out."""

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.values.columns import column


def skip_null_values(batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
    """Filter records whose value is null."""
    values = batch.column("value")
    if values.null_count:
        marks.filter(column(batch.filter(pc.is_null(values)), "offset"))
    return batch

"""`source.max_value_bytes`: rejects longer values."""

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.vectors import int64s


class TooLarge:
    """Rejects values of more than `limit` bytes. Null values pass."""

    def __init__(self, limit: int) -> None:
        self._limit = int64s([limit], 1)[0]

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        """Check the lengths."""
        lengths = pc.binary_length(batch.column("value"))
        rows = pc.indices_nonzero(pc.greater(lengths, self._limit))
        if len(rows):
            too_long = zip(batch.column("offset").take(rows).to_pylist(), lengths.take(rows).to_pylist(), strict=True)
            marks.reject({offset: self._reason(length) for offset, length in too_long})
        return batch

    def _reason(self, length: int) -> str:
        return (
            f"the value has {length:,} bytes, and `source.max_value_bytes` was {self._limit.as_py():,} when the run "
            "was planned (a higher limit applies to later plans)"
        )

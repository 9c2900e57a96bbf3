"""The stage `layout`: it gives each record its part, and, if the manifest counts hours, its hour."""

import pyarrow as pa

from kafka_archiver.records.pipeline.base import HOUR, PART, Marks, rows_where
from kafka_archiver.records.pipeline.filing.paths import NOWHERE, Paths, hours_of, times_of
from kafka_archiver.records.vectors import numbers


class LayoutStage:
    """Adds the columns `PART` and `HOUR`, and marks records without a place.

    :param paths: of the chunk. :param hours: whether to add `HOUR`.
    """

    def __init__(self, paths: Paths, hours: bool) -> None:
        self._paths, self._hours = paths, hours

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        parts = self._paths.parts(batch, marks)
        filed = batch.append_column(PART, numbers(parts))
        if (parts == NOWHERE).any():
            batch = filed = rows_where(filed, parts != NOWHERE)
        return filed.append_column(HOUR, numbers(hours_of(times_of(batch)))) if self._hours else filed

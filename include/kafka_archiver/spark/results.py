"""Brings Spark's results of records back to the records, in the second half of a task."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.transforms import Sql
from kafka_archiver.records.pipeline.base import NONE
from kafka_archiver.records.pipeline.transform.from_spark import COUNT, ROWS, SPARK_TIME, UNFIT
from kafka_archiver.records.pipeline.transform.spark_types import field_of
from kafka_archiver.spark.spool import Segment, Spool
from kafka_archiver.values.columns import column


class Results:
    """The records of a task, chunk by chunk, with what Spark made of them.

    :param batches: Spark's rows in the order of the records: as `sql.transformed` gives them; of a function without
        `_fate`.
    """

    def __init__(self, sql: Sql, spool: Spool, batches: Iterator[pa.RecordBatch]) -> None:
        self._sql, self._spool, self._batches = sql, spool, batches
        self._waiting: deque[pa.RecordBatch] = deque()
        self._segment: Segment | None = None
        self._ended = False

    def chunk(self) -> tuple[int, Chunk] | None:
        """The next chunk of the task, with its number; None: there is none. Take all its records first.

        :raises ArchiverError: what made the reader fail.
        """
        while self._segment is None:
            self._segment = self._spool.take()
            if self._segment is None:
                if self._ended:
                    return None
                self._pull()
        return self._segment.number, self._segment.chunk

    def records(self, number: int) -> Iterator[pa.RecordBatch]:
        """The records of a chunk by its number, with the columns `COUNT` and `ROWS`."""
        while (following := self.chunk()) and following[0] == number:
            segment = self._segment
            assert segment
            self._segment = None
            if segment.records.num_rows:
                yield self._with_results(segment)

    def finish(self) -> None:
        """:raises IntegrityError: Spark has given rows that no record has."""
        while not self._ended:
            self._pull()
        if self._waiting:
            row = self._waiting[0]
            raise IntegrityError(f"Spark returned a row of offset {row.column('_offset')[0]}, which was not read")

    def _pull(self) -> None:
        batch = next(self._batches, None)
        if batch is None:
            self._ended = True
        elif batch.num_rows:
            self._waiting.append(batch)

    def _with_results(self, segment: Segment) -> pa.RecordBatch:
        records = segment.records
        offsets = column(records, "offset")
        rows = self._until(segment.number, int(offsets[-1]))
        result_offsets = np.concatenate([column(row, "_offset") for row in rows]) if rows else np.empty(0, np.int64)
        if len(result_offsets) and (
            (result_offsets[1:] < result_offsets[:-1]).any() or not np.isin(result_offsets, offsets).all()
        ):
            raise IntegrityError("Spark returned rows in another order than it got the records, or of other records")
        if self._sql.function is None:
            if len(result_offsets) != segment.sent:
                raise IntegrityError(f"Spark got {segment.sent} records and returned {len(result_offsets)} rows")
            fates = np.concatenate([column(row, "_fate") for row in rows]) if rows else result_offsets
            counts = np.zeros(len(offsets), np.int64)
            counts[np.searchsorted(offsets, result_offsets)] = fates
            kept = fates == 1
        else:
            counts = np.bincount(np.searchsorted(offsets, result_offsets), minlength=len(offsets)).astype(np.int64)
            kept = np.ones(len(result_offsets), np.bool_)
        counts[np.isin(offsets, segment.unfit)] = UNFIT
        result = records.append_column(COUNT, pa.array(counts, pa.int64()))
        if self._sql.time:
            times = np.full(len(offsets), NONE)
            if rows:
                times[np.searchsorted(offsets, result_offsets)] = np.concatenate([column(row, "_time") for row in rows])
            result = result.append_column(SPARK_TIME, pa.array(times, pa.int64()))
        if not self._sql.makes_values:
            return result
        kind = field_of(self._sql.made[segment.chunk.topic]).type
        values = [row.column("_row").cast(kind) for row in rows]
        all_values = pa.concat_arrays(values) if values else pa.nulls(0, kind)
        ends = np.concatenate([[0], np.cumsum(np.maximum(counts, 0))])
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), all_values.filter(pa.array(kept)))
        return result.append_column(ROWS, lists)

    def _until(self, number: int, last: int) -> list[pa.RecordBatch]:
        """The waiting rows of a chunk up to an offset."""
        batches: list[pa.RecordBatch] = []
        while True:
            if not self._waiting:
                if self._ended:
                    return batches
                self._pull()
                continue
            row = self._waiting.popleft()
            inside = (column(row, "_chunk") == number) & (column(row, "_offset") <= last)
            count = int(np.argmin(inside)) if not inside.all() else len(inside)
            if count:
                batches.append(row.slice(0, count))
            if count < row.num_rows:
                self._waiting.appendleft(row.slice(count))
                return batches

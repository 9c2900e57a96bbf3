"""Feeds Spark's SQL: reads chunks in a task, decodes what expressions see, and leaves whole records in the spool."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from kafka_archiver.messages.errors import ArchiverError, IntegrityError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.pipeline.base import Marks, rows_where
from kafka_archiver.records.pipeline.decode import Decode, decodings
from kafka_archiver.records.pipeline.transform.questions import fields_for
from kafka_archiver.spark.java import COLUMN, require_java
from kafka_archiver.spark.reading import Reads, whole_chunk
from kafka_archiver.spark.sink import Sink, only, place_of
from kafka_archiver.spark.spool import Segment, Spool, sweep
from kafka_archiver.values.columns import column

_MICROSECONDS = pa.timestamp("us", "UTC")


class SparkInput:
    """The columns that Spark gets of a topic's records."""

    def __init__(self, sink: Sink, topic: str) -> None:
        settings, decoded, schemas = sink.plan.settings, sink.job.decoded, sink.job.schemas
        self._topic = topic
        self._columns = fields_for(settings, topic, decoded, schemas)
        decodings_ = {decoding.column: decoding for decoding in decodings(settings, topic, decoded, schemas)}
        self._stages = [Decode(decoding, [decoding.added]) for c, decoding in decodings_.items() if c in self._columns]
        self._aside = sink.job.aside
        self._names = {c: decodings_[c].added if c in decodings_ else c for c in self._columns}

    def batch(self, number: int, chunk: Chunk, records: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
        """The records that the decoders take; the pipeline decodes all of them again, and says what is wrong.

        Also the offsets of records that Spark cannot have. `number`: of the chunk in its plan.
        """
        if aside := self._aside and self._aside.reasons(chunk.name):
            records = rows_where(records, ~np.isin(column(records, "offset"), list(aside)))
        try:
            return self._batch(number, chunk, records), []
        except (pa.ArrowException, ValueError, OverflowError):
            if records.num_rows == 1:
                return self._batch(number, chunk, records.slice(0, 0)), column(records, "offset").tolist()
        middle = records.num_rows // 2
        first, unfit = self.batch(number, chunk, records.slice(0, middle))
        second, more = self.batch(number, chunk, records.slice(middle))
        return pa.concat_batches([first, second]), unfit + more

    def _batch(self, number: int, chunk: Chunk, records: pa.RecordBatch) -> pa.RecordBatch:
        marks = Marks()
        decoded = records
        for stage in self._stages:
            decoded = stage(decoded, marks)
        fitting = {c: self._fitting(c, decoded) for c in self._columns}
        good = ~np.isin(column(decoded, "offset"), marks.offsets())
        count = decoded.num_rows
        columns = {
            "_chunk": pa.repeat(pa.scalar(number, pa.int64()), count),
            "_offset": decoded.column("offset"),
            "topic": pa.repeat(self._topic, count),
            "partition": pa.repeat(pa.scalar(chunk.partition, pa.int32()), count),
            "offset": decoded.column("offset"),
            "timestamp": _moments(decoded.column("timestamp")),
            "timestamp_type": decoded.column("timestamp_type"),
            **fitting,
        }
        return rows_where(pa.RecordBatch.from_pydict(columns), good)

    def _fitting(self, name: str, decoded: pa.RecordBatch) -> pa.Array:
        return self._columns[name].array(decoded.column(self._names[name]))


def _moments(milliseconds: pa.Array) -> pa.Array:
    """Kafka's timestamps as Spark's; null without one, or where Spark's calendar ends."""
    inside = pc.and_(pc.greater_equal(milliseconds, 0), pc.less(milliseconds, 253_402_300_800_000))
    known = pc.if_else(inside, milliseconds, pa.scalar(None, pa.int64()))
    return pc.multiply(known, 1000).cast(_MICROSECONDS)


@dataclass(frozen=True)
class Feed:
    """The first half of a task, for `mapInArrow`. Can be pickled.

    :param job: names the spools of one job. :param tasks: the chunks of each task, for `by_number`.
    """

    sink: Sink
    job: str
    tasks: Sequence[Sequence[Chunk]] = ()
    read: Callable[[Sequence[Chunk]], Reads] | None = None

    def by_number(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the chunks of a task; `numbers` has the task's."""

        def reads() -> Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]:
            assert self.read
            for batch in map(self._checked, numbers):
                for number in batch.column(0).to_pylist():
                    yield from self.read(self.tasks[number])

        return self._fed(reads())

    def of_frame(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take the records of one chunk from `source.chunks_frame`."""

        def reads() -> Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]:
            some = (self._checked(batch) for batch in batches if batch.num_rows)
            first = next(some, None)
            if first is not None:
                name, offset = place_of(first)
                chunk = whole_chunk(self.sink.plan, name, offset)
                yield chunk, (only(batch, name) for batch in chain([first], some))

        return self._fed(reads())

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch without the executor's Java, which is that of the plan."""
        for running in batch.column(COLUMN).slice(0, 1).to_pylist():
            require_java(self.sink.plan, running, "an executor of Spark")
        return batch.drop_columns([COLUMN])

    def _fed(self, reads: Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]) -> Iterator[pa.RecordBatch]:
        list(sweep())
        spool = Spool(spool_name(self.job))
        inputs: dict[str, SparkInput] = {}
        # A function may see the number: it is the same in each attempt, however chunks are shared among tasks.
        order = {(chunk.name, chunk.start): number for number, chunk in enumerate(self.sink.plan.chunks())}
        try:
            for chunk, batches in reads:
                whole = whole_chunk(self.sink.plan, chunk.name, chunk.start)
                number = order[whole.name, whole.start]
                if chunk.topic not in inputs:
                    inputs[chunk.topic] = SparkInput(self.sink, chunk.topic)
                empty = True
                for batch in batches:
                    if batch.num_rows:
                        sent, unfit = inputs[chunk.topic].batch(number, whole, batch)
                        spool.write(Segment(number, whole, batch, sent.num_rows, unfit))
                        empty = False
                        yield sent
                if empty and self.read:
                    spool.write(Segment(number, whole, pa.record_batch({"offset": pa.array([], pa.int64())}), 0, []))
        except ArchiverError as error:
            spool.end(error)
        else:
            spool.end()


def spool_name(job: str) -> str:
    """The name of this attempt's spool."""
    context = TaskContext.get()
    if context is None:
        raise IntegrityError("not in a Spark task")
    return f"{job}-{context.taskAttemptId()}"

"""Sink: hands each Spark task's batches to the writer, and the writer's results to the driver."""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from kafka_archiver.columns import column
from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import UNREAD
from kafka_archiver.formats.known_bytes import require_known_bytes
from kafka_archiver.kafka.messages import SPARK_TIMES
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.reading import whole_chunk
from kafka_archiver.store import open_store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

# The columns that `Sink.write_frame` yields.
FRAME = ["task", "result"]
Report = Callable[[ChunkResult, float], None]


class Collected(AccumulatorParam[list[bytes]]):
    """Pickled results with their seconds, on the driver as soon as their task has succeeded.

    For reports, and to clean up after a failure. What counts is what the action returns: Spark takes that from
    exactly one attempt of each task.
    """

    def __init__(self, report: Report) -> None:
        self._report = report

    def __reduce__(self) -> tuple[object, ...]:
        # Executors only add to a list; what the driver does with it stays there.
        return (Collected, (_silent,))

    def zero(self, value: list[bytes]) -> list[bytes]:  # noqa: ARG002 - Spark's signature
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        for item in value2:
            self._report(*pickle.loads(item))
        value1.extend(value2)
        return value1


def _silent(_: ChunkResult, __: float) -> None:
    pass


@dataclass(frozen=True)
class Sink:
    """Writes chunks in Spark's tasks. Pickles."""

    plan: Plan
    url: str
    options: Mapping[str, str]
    limits: Limits
    bad_record: BadRecord
    collected: "Accumulator[list[bytes]]"

    def begin(self) -> None:
        """To be called by each task before it reads.

        :raises PermanentError: the libraries of this process would write other bytes.
        """
        require_known_bytes(self.plan.settings, self.bad_record == "dead_letter")

    def write(self, chunk: Chunk, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Write one chunk. Returns the pickled ChunkResult, with the seconds it took."""
        started = time.monotonic()
        job = WriteJob.of(self.plan, self.bad_record)
        result = write_chunk(chunk, batches, job, open_store(self.url, self.options), self.limits)
        pickled = pickle.dumps((result, time.monotonic() - started))
        self.collected.add([pickled])
        return pickled

    def write_frame(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over `source.chunks_frame`: the one chunk that the task's batches are of.

        Yields a row: the task's number, and in column `result` what `write` returned; null for a chunk without records,
        of which nothing here says which it is.
        """
        self.begin()
        some = (batch for batch in batches if batch.num_rows)
        first = next(some, None)
        result = None
        if first is not None:
            name, offset = _place(first)
            records = (_only(batch, name) for batch in chain([first], some))
            result = self.write(whole_chunk(self.plan, name, offset), records)
        context = TaskContext.get()
        assert context is not None, "not in a task of Spark's"
        yield pa.record_batch([pa.array([context.partitionId()], pa.int32()), pa.array([result], pa.binary())], FRAME)


def _place(batch: pa.RecordBatch, row: int = 0) -> tuple[TopicPartition, int]:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return TopicPartition(topic, partition), offset


def _only(batch: pa.RecordBatch, name: TopicPartition) -> pa.RecordBatch:
    """The batch without the columns that say where it is from; with `UNREAD`, where a time is not the record's own.

    All of a task's records are of one partition.
    """
    if not _place(batch)[0] == _place(batch, -1)[0] == name:
        raise IntegrityError(f"Spark mixed partitions in one task: found others beside {name}")
    batch = batch.drop_columns(["topic", "partition"])
    times = column(batch, "timestamp")
    old = times < SPARK_TIMES[0]
    if not old.any():
        return batch
    batch = batch.set_column(batch.schema.names.index("timestamp"), "timestamp", pa.array(np.where(old, -1, times)))
    marks = [_why(batch, row) if is_old else None for row, is_old in enumerate(old.tolist())]
    return batch.append_column(UNREAD, pa.array(marks, UNREAD.type))


def _why(batch: pa.RecordBatch, row: int) -> dict[str, str]:
    """What `UNREAD` says of a record with an old time."""
    headers = batch.column("headers")[row].as_py() if "headers" in batch.schema.names else None
    # It has put this for what is not UTF-8, which the native reader cannot read.
    readable = not any("\ufffd" in header["key"] for header in headers or ())
    return {
        "column": "timestamp",
        "reason": "its time is before 1901, which Spark's Kafka source does not give exactly"
        + "; `source.reader: native` stores it as it is" * readable,
    }

"""Sink: gives each Spark task's batches to the writer, and the writer's results to the driver.

The error of a failed task comes to the driver as a value too. An exception would become text, and Spark would retry
permanent errors three times.
"""

import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from kafka_archiver.kafka.messages import SPARK_TIMES
from kafka_archiver.messages.errors import ArchiverError, Failure, IntegrityError, TransientError
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.formats.known_bytes import require_known_bytes
from kafka_archiver.records.formats.unread import OLD_TIME
from kafka_archiver.records.pipeline.transform.base import BatchOrigin
from kafka_archiver.records.pipeline.transform.chain import require_transforms
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.disk import sweep
from kafka_archiver.records.writer.memory import keep_freed_memory
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.spark.reading import whole_chunk
from kafka_archiver.spark.results import Results
from kafka_archiver.spark.spool import Spool
from kafka_archiver.store import Store, open_store
from kafka_archiver.values.columns import column
from kafka_archiver.values.garbage_collector import pass_over_modules
from kafka_archiver.values.ranges import TopicPartition

log = logging.getLogger(__name__)
# The columns that `Sink.write_frame` yields.
FRAME = ["task", "result"]
# A task's result for a chunk; its last result may be a failure.
Outcome = ChunkResult | Failure
Report = Callable[[Outcome, float], None]


class Collected(AccumulatorParam[list[bytes]]):
    """Pickled outcomes with their seconds. The driver gets them when a task ends without an exception.

    For progress reports, to end the job early, and to clean up after a failure. The results that count are those of the
    action: Spark takes them from exactly one attempt of each task.
    """

    def __init__(self, report: Report | None) -> None:
        self._report = report

    def __reduce__(self) -> tuple[object, ...]:
        # Executors only append; the report function stays in the driver.
        return (Collected, (None,))

    def zero(self, value: list[bytes]) -> list[bytes]:  # noqa: ARG002 - Spark's signature
        return []

    def addInPlace(self, value1: list[bytes], value2: list[bytes]) -> list[bytes]:  # noqa: N802 - Spark's name
        if self._report:
            for item in value2:
                self._report(*pickle.loads(item))
        value1.extend(value2)
        return value1


def unpacked(pickled: Iterable[bytes]) -> list[Outcome]:
    """The outcomes of tasks, without their seconds."""
    return [pickle.loads(item)[0] for item in pickled]


def results(outcomes: Iterable[Outcome]) -> list[ChunkResult]:
    """The results of written chunks."""
    return [outcome for outcome in outcomes if isinstance(outcome, ChunkResult)]


def failed(outcomes: Iterable[Outcome]) -> ArchiverError | None:
    """The error of a failed task; a permanent error rather than a transient one."""
    errors = [outcome.error() for outcome in outcomes if isinstance(outcome, Failure)]
    return min(errors, key=lambda error: isinstance(error, TransientError), default=None)


@dataclass(frozen=True)
class Sink:
    """Writes chunks in Spark tasks. Can be pickled.

    :param tries: how often Spark tries a task.
    """

    plan: Plan
    url: str
    options: Mapping[str, str]
    limits: Limits
    job: WriteJob
    collected: "Accumulator[list[bytes]] | None"
    tries: int

    @cached_property
    def store(self) -> Store:
        """The store, for tasks: what has opened it cannot be pickled."""
        return open_store(self.url, self.options)

    def begin(self) -> None:
        """Check this process, and remove what killed tasks left on disk. Each task calls this before it reads.

        :raises PermanentError: its libraries, or its mapper, would write other bytes.
        """
        keep_freed_memory()
        sweep(self.limits.spill_directory)
        require_known_bytes(self.plan.settings, self.job.bad_record == "dead_letter")
        require_transforms(self.plan.settings, BatchOrigin(keys=self.job.keys))
        pass_over_modules()

    def write(self, chunk: Chunk, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Write one chunk. Returns the pickled ChunkResult, with the seconds it took."""
        started = time.monotonic()
        result = write_chunk(chunk, batches, self.job, self.store, self.limits)
        return self._tell(result, time.monotonic() - started)

    def failure(self, error: BaseException) -> bytes | None:
        """Return the value that a task returns instead of raising the error. None: the task must raise it.

        A task raises a transient error, except in its last attempt: Spark's retry may run on another machine, and keeps
        the results of other tasks.
        """
        context = TaskContext.get()
        has_further_attempt = context is not None and context.attemptNumber() + 1 < self.tries
        if not isinstance(error, ArchiverError) or (isinstance(error, TransientError) and has_further_attempt):
            return None
        log.error("%s", error)
        return self._tell(Failure.of(error), 0.0)

    def _tell(self, outcome: Outcome, seconds: float) -> bytes:
        pickled = pickle.dumps((outcome, seconds))
        if self.collected is not None:
            self.collected.add([pickled])
        return pickled

    def write_frame(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` on `source.chunks_frame`: write the chunk of this task.

        Yields one row: the task's number, and in column `result` the value of `write` or `failure`; null for a chunk
        without records, which the task cannot identify.
        """
        try:
            result = self._write_some(batch for batch in batches if batch.num_rows)
        except ArchiverError as error:
            result = self.failure(error)
            if result is None:
                raise
        context = TaskContext.get()
        assert context is not None, "not in a Spark task"
        yield pa.record_batch([pa.array([context.partitionId()], pa.int32()), pa.array([result], pa.binary())], FRAME)

    def write_spooled(self, batches: Iterator[pa.RecordBatch], job: str) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` on what Spark made of the records of a `feed.Feed`: write the chunks of this task.

        Yields rows as `write_frame`, one for each chunk.
        """
        transform = self.plan.settings.transform
        context = TaskContext.get()
        assert context is not None, "not in a Spark task"
        assert transform, "a plan without transforms"
        assert transform.sql, "a plan without SQL"
        spool = Spool(f"{job}-{context.taskAttemptId()}")
        written: list[bytes | None] = []
        try:
            self.begin()
            results = Results(transform.sql, spool, batches)
            while following := results.chunk():
                number, chunk = following
                written.append(self.write(chunk, results.records(number)))
            results.finish()
        except ArchiverError as error:
            failed = self.failure(error)
            if failed is None:
                raise
            written.append(failed)
        finally:
            spool.remove()
        for result in written or [None]:
            number = pa.array([context.partitionId()], pa.int32())
            yield pa.record_batch([number, pa.array([result], pa.binary())], FRAME)

    def _write_some(self, batches: Iterator[pa.RecordBatch]) -> bytes | None:
        self.begin()
        first = next(batches, None)
        if first is None:
            return None
        name, offset = place_of(first)
        records = (only(batch, name) for batch in chain([first], batches))
        return self.write(whole_chunk(self.plan, name, offset), records)


def place_of(batch: pa.RecordBatch, row: int = 0) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of a row."""
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return TopicPartition(topic, partition), offset


def only(batch: pa.RecordBatch, name: TopicPartition) -> pa.RecordBatch:
    """The batch without topic and partition; with `UNREAD` if Spark changed a timestamp.

    :raises IntegrityError: the task has records of another partition.
    """
    if not place_of(batch)[0] == place_of(batch, -1)[0] == name:
        raise IntegrityError(f"Spark mixed partitions in one task: found records of others than {name}")
    batch = batch.drop_columns(["topic", "partition"])
    times = column(batch, "timestamp")
    old = times < SPARK_TIMES[0]
    if not old.any():
        return batch
    batch = batch.set_column(batch.schema.names.index("timestamp"), "timestamp", pa.array(np.where(old, -1, times)))
    marks = [_why(batch, row) if is_old else None for row, is_old in enumerate(old.tolist())]
    return batch.append_column(UNREAD, pa.array(marks, UNREAD.type))


def _why(batch: pa.RecordBatch, row: int) -> dict[str, str]:
    """The value of `UNREAD` for a record with an old timestamp."""
    headers = batch.column("headers")[row].as_py() if "headers" in batch.schema.names else None
    # Spark replaces invalid UTF-8 in header keys by U+FFFD; the native reader cannot read such headers.
    readable = not any("\ufffd" in header["key"] for header in headers or ())
    return {
        "column": "timestamp",
        "reason": OLD_TIME + "; `source.reader: native` stores it as it is" * readable,
    }

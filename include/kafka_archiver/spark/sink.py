"""Sink: hands each Spark task's batches to the writer, and the writer's results to the driver."""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator, AccumulatorParam

from kafka_archiver.errors import IntegrityError, PermanentError
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.reading import whole_chunk
from kafka_archiver.store import open_store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

Report = Callable[[ChunkResult, float], None]
# 1901-01-01T00:00:00Z in milliseconds. An instant before 1900 comes from Spark's Kafka source as one of the Julian
# calendar and of the worker's time zone, up to days beside it.
_OLDEST_MS = -2_177_452_800_000


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

        Yields what `write` returned as the only row of column `result`; nothing for a chunk without records.
        """
        some = (batch for batch in batches if batch.num_rows)
        first = next(some, None)
        if first is not None:
            name, offset = _place(first)
            records = (_only(batch, name) for batch in chain([first], some))
            result = self.write(whole_chunk(self.plan, name, offset), records)
            yield pa.RecordBatch.from_pydict({"result": pa.array([result], pa.binary())})


def _place(batch: pa.RecordBatch, row: int = 0) -> tuple[TopicPartition, int]:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return TopicPartition(topic, partition), offset


def _only(batch: pa.RecordBatch, name: TopicPartition) -> pa.RecordBatch:
    """The batch without the columns that say where it is from. All of a task's records are of one partition."""
    if not _place(batch)[0] == _place(batch, -1)[0] == name:
        raise IntegrityError(f"Spark mixed partitions in one task: found others beside {name}")
    times = batch.column("timestamp")
    if (oldest := pc.min(times).as_py()) < _OLDEST_MS:
        offset = batch.column("offset")[times.index(oldest).as_py()]
        raise PermanentError(
            f"{name} offset {offset} has a time before 1901, which Spark's Kafka source does not give exactly; set "
            "`source.reader: native`, which stores it as it is, and clear the task `archive`"
        )
    return batch.drop_columns(["topic", "partition"])

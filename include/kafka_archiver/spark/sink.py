"""Sink: hands each Spark task's batches to the writer, and the writer's results to the driver."""

import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam

from kafka_archiver.errors import IntegrityError
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.store import open_store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

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


def writer_of(
    plan: Plan, url: str, options: Mapping[str, str], limits: Limits, collected: "Accumulator[list[bytes]]"
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What each Spark task does with its batches (for `mapInArrow`): write the one chunk they are of.

    The function yields the pickled ChunkResult, with the seconds it took, as the only row of column `result`;
    nothing for a chunk without records.
    """
    job = WriteJob(archive=plan.archive, settings=plan.settings)
    topics = sorted({c.topic for c in plan.chunks()})

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = (batch for batch in batches if batch.num_rows)
        first = next(some, None)
        if first is not None:
            name, offset = _place(first, topics)
            chunk = plan.chunk_of(name, offset)
            if chunk is None:
                raise IntegrityError(f"Spark read offset {offset} of {name}, which is not in plan {plan.run}")
            records = (_only(batch, name, topics) for batch in chain([first], some))
            started = time.monotonic()
            result = write_chunk(chunk, records, job, open_store(url, options), limits)
            pickled = pickle.dumps((result, time.monotonic() - started))
            collected.add([pickled])
            yield pa.RecordBatch.from_pydict({"result": pa.array([pickled], pa.binary())})

    return write


def _place(batch: pa.RecordBatch, topics: list[str]) -> tuple[TopicPartition, int]:
    topic = batch.column("topic")[0].as_py() if len(topics) > 1 else topics[0]
    return TopicPartition(topic, batch.column("partition")[0].as_py()), batch.column("offset")[0].as_py()


def _only(batch: pa.RecordBatch, name: TopicPartition, topics: list[str]) -> pa.RecordBatch:
    """The batch without the columns that say where it is from. All of a task's records are of one partition."""
    partitions = batch.column("partition")
    same = partitions[-1].as_py() == name.partition == partitions[0].as_py()
    if not same or (len(topics) > 1 and batch.column("topic")[-1].as_py() != name.topic):
        raise IntegrityError(f"Spark mixed partitions in one task: found others beside {name}")
    return batch.drop_columns([c for c in ("topic", "partition") if c in batch.schema.names])

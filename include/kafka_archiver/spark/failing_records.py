"""Locates the records on which a PySpark function fails, by bisection: Spark does not tell."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Timer

import pyarrow as pa
from pyspark.sql import SparkSession

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.transforms import Sql
from kafka_archiver.spark.feed import spool_name
from kafka_archiver.spark.sink import Sink
from kafka_archiver.spark.spool import Spool
from kafka_archiver.spark.sql_tasks import of_function, transformed_records

log = logging.getLogger(__name__)
SECONDS = 300.0


def located(
    error: PermanentError, spark: SparkSession, chunks: Sequence[Chunk], kafka: Mapping[str, str], sink: Sink, sql: Sql
) -> PermanentError:
    """The error with the smallest range of offsets for which the function fails alone. Writes nothing."""
    log.info("%s failed: looking for the record, by running it on parts of the records", sql.function)

    until = time.monotonic() + SECONDS

    def fails(some: Sequence[Chunk]) -> bool:
        job = uuid.uuid4().hex
        # On other records than those of the failed job, the function may never end.
        context = spark.sparkContext
        context.setJobGroup(job, f"look for the record on which {sql.function} fails", interruptOnCancel=True)
        # Also if the job has not begun yet.
        cancel = context._jsc.sc().cancelJobGroupAndFutureJobs
        ender = Timer(max(until - time.monotonic(), 0), cancel, [job])
        ender.start()
        try:
            for topic in dict.fromkeys(chunk.topic for chunk in some):
                chunks_of_topic = [chunk for chunk in some if chunk.topic == topic]
                result = transformed_records(spark, topic, chunks_of_topic, kafka, sink, sql, job)
                result.frame.mapInArrow(lambda batches: _drained(batches, job), "nothing int").collect()
        except Exception as again:  # noqa: BLE001 - another error shows nothing of the function
            return of_function(again, sql.function or "") is not None
        finally:
            ender.cancel()
            context._jsc.clearJobGroup()
        return False

    failing_range = smallest_failing_range(chunks, fails, until)
    if len(failing_range) != 1 or failing_range[0] in chunks:
        return error
    [failing] = failing_range
    place = f"{failing.name} offset {failing.start}" if failing.range.size == 1 else str(failing)
    return PermanentError(f"{place}: {error}")


def smallest_failing_range(
    chunks: Sequence[Chunk], fails: Callable[[Sequence[Chunk]], bool], until: float
) -> Sequence[Chunk]:
    """Bisect to the smallest failing range. If neither half of a range fails alone, it is the range itself.

    :param until: of `time.monotonic`: the search ends then with the range that it has.
    """
    while time.monotonic() < until:
        failing = next((half for half in _halves(chunks) if fails(half)), None)
        if failing is None:
            break
        chunks = failing
    return chunks


def _halves(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    if len(chunks) > 1:
        yield from (chunks[: len(chunks) // 2], chunks[len(chunks) // 2 :])
    elif (chunk := chunks[0]).range.size > 1:
        middle = (chunk.start + chunk.end) // 2
        yield from ([chunk.model_copy(update={"end": middle})], [chunk.model_copy(update={"start": middle})])


def _drained(batches: Iterator[pa.RecordBatch], job: str) -> Iterator[pa.RecordBatch]:
    spool = Spool(spool_name(job))
    try:
        for _ in batches:
            pass
    finally:
        spool.remove()
    yield from ()

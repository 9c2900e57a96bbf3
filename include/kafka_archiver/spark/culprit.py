"""Where a PySpark function fails: found by running it on fewer and fewer records, because Spark does not tell."""

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
from kafka_archiver.spark.sql_tasks import made_of, of_function

log = logging.getLogger(__name__)
SECONDS = 300.0


def located(
    error: PermanentError, spark: SparkSession, chunks: Sequence[Chunk], kafka: Mapping[str, str], sink: Sink, told: Sql
) -> PermanentError:
    """The error with the smallest range of offsets for which the function fails alone. Writes nothing."""
    log.info("%s failed: looking for the record, by running it on parts of the records", told.function)

    until = time.monotonic() + SECONDS

    def fails(some: Sequence[Chunk]) -> bool:
        job = uuid.uuid4().hex
        # On other records than those of the failed job, the function may never end.
        context = spark.sparkContext
        context.setJobGroup(job, f"look for the record on which {told.function} fails", interruptOnCancel=True)
        # Also if the job has not begun yet.
        cancel = context._jsc.sc().cancelJobGroupAndFutureJobs
        ender = Timer(max(until - time.monotonic(), 0), cancel, [job])
        ender.start()
        try:
            for topic in dict.fromkeys(chunk.topic for chunk in some):
                ours = [chunk for chunk in some if chunk.topic == topic]
                made = made_of(spark, topic, ours, kafka, sink, told, job)
                made.frame.mapInArrow(lambda batches: _drained(batches, job), "nothing int").collect()
        except Exception as again:  # noqa: BLE001 - another error shows nothing of the function
            return of_function(again, told.function or "") is not None
        finally:
            ender.cancel()
            context._jsc.clearJobGroup()
        return False

    found = smallest(chunks, fails, until)
    if len(found) != 1 or found[0] in chunks:
        return error
    [one] = found
    place = f"{one.name} offset {one.start}" if one.range.size == 1 else str(one)
    return PermanentError(f"{place}: {error}")


def smallest(chunks: Sequence[Chunk], fails: Callable[[Sequence[Chunk]], bool], until: float) -> Sequence[Chunk]:
    """The smallest half of a half that still fails; all, if neither half does.

    :param until: of `time.monotonic`: what is found then is enough.
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
    elif (one := chunks[0]).range.size > 1:
        middle = (one.start + one.end) // 2
        yield from ([one.model_copy(update={"end": middle})], [one.model_copy(update={"start": middle})])


def _drained(batches: Iterator[pa.RecordBatch], job: str) -> Iterator[pa.RecordBatch]:
    spool = Spool(spool_name(job))
    try:
        for _ in batches:
            pass
    finally:
        spool.remove()
    yield from ()

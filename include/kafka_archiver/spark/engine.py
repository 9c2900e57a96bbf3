"""The engine: writes the chunks of a plan in Spark's tasks, by the native reader or by Spark's Kafka source."""

import logging
import os
import pickle
from collections.abc import Iterable, Sequence
from itertools import count

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from kafka_archiver.job import Reader
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.spark.failures import understand
from kafka_archiver.spark.local_dirs import local_dirs
from kafka_archiver.spark.native import write_natively
from kafka_archiver.spark.reading import describe, nothing_there, read_settings, whole_chunk
from kafka_archiver.spark.sink import Collected, Sink
from kafka_archiver.spark.source import chunks_frame, range_read
from kafka_archiver.store import open_store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits

log = logging.getLogger(__name__)
SESSION = {
    # The size of an Arrow batch is computed anew for every row, at a cost that grows with its rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}


class SparkEngine:
    """Spark, started only when there is something to read; one action a run.

    :param url, options: the store.
    :param kafka: librdkafka's client properties.
    """

    def __init__(
        self, url: str, options: dict[str, str], kafka: dict[str, str], limits: Limits, reader: Reader = "auto"
    ) -> None:
        self._url, self._options, self._kafka, self._limits, self._reader = url, options, kafka, limits, reader

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        """Write the chunks' objects, invisible until somebody completes them.

        :param chunks: of the plan, each from where the log still has it.
        :raises ArchiverError: nothing was written then.
        """
        context = session(plan.archive).sparkContext if self._reader == "spark" else spark_context(plan.archive)
        done = count(1)

        def report(result: ChunkResult, seconds: float) -> None:
            log.info("chunk %d of %d: %s", next(done), len(chunks), describe(result, seconds))

        collected = context.accumulator([], Collected(report))
        sink = Sink(plan, self._url, self._options, self._limits, bad_record, collected)
        try:
            if self._reader == "spark":
                results = self._by_frame(plan, chunks, sink)
            else:
                results = _results(write_natively(context, chunks, self._kafka, sink))
        except Exception as error:
            abort(_results(collected.value), open_store(self._url, self._options))
            raise understand(error) from error
        return results

    def _by_frame(self, plan: Plan, chunks: Sequence[Chunk], sink: Sink) -> list[ChunkResult]:
        """What becomes of the chunks when Spark's source reads them."""
        settings = read_settings(plan.settings, sink.bad_record)
        frame = chunks_frame(session(plan.archive), chunks, settings, self._kafka)
        written = frame.mapInArrow(sink.write_frame, "task int, result binary")
        rows = written.collect()
        empty = [range_read(written, row["task"]) for row in rows if row["result"] is None]
        given = {(chunk.name, chunk.range) for chunk in chunks}
        wholes = [whole_chunk(plan, name, read.start) for name, read in empty if (name, read) in given]
        return _results(row["result"] for row in rows if row["result"]) + [nothing_there(chunk) for chunk in wholes]


def _results(pickled: Iterable[bytes]) -> list[ChunkResult]:
    return [pickle.loads(item)[0] for item in pickled]


def session(archive: str) -> SparkSession:
    """The Spark session of a job; what spark-submit was told goes before our defaults."""
    builder = SparkSession.builder.appName(f"archive {archive}")
    told = _told()
    settings = SESSION if _room_for_sockets(told) else {**SESSION, "spark.python.unix.domain.socket.enabled": "false"}
    for key, value in settings.items():
        builder = builder.config(key, str(told.get(key, value)))
    return builder.config(map=dict(local_dirs(told))).getOrCreate()


def spark_context(archive: str) -> SparkContext:
    """Spark without SQL: all that the native reader needs, and a fraction of a session's start."""
    told = _told()
    return SparkContext.getOrCreate(told.setAll(list(local_dirs(told).items())).setAppName(f"archive {archive}"))


def _told() -> SparkConf:
    """What spark-submit was told. Before Python is connected to its JVM it would seem to be nothing."""
    SparkContext._ensure_initialized()
    return SparkConf()


def _room_for_sockets(told: SparkConf) -> bool:
    """Whether a socket's path can be below the temporary directory: it may have 107 bytes, of which Spark adds 42."""
    place = SparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")  # type: ignore[union-attr]
    return told.contains("spark.python.unix.domain.socket.dir") or len(os.fsencode(place)) <= 65

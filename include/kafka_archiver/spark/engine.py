"""The engine: writes the chunks of a plan in Spark tasks. Three readers: native, Spark's Kafka source, dead letters."""

import atexit
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import INPUT_CONVERTER  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from kafka_archiver.jobs.archive import Reader
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.messages.progress import ChunkProgress
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.disk import working_directory
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.spark.failing_records import located
from kafka_archiver.spark.failures import APPLICATION, failed_task, process_ended, understand
from kafka_archiver.spark.fatal_records import explained, search
from kafka_archiver.spark.java import LOCALE
from kafka_archiver.spark.native import reader_of, share, write_in_tasks
from kafka_archiver.spark.reading import describe, nothing_there, read_settings, whole_chunk
from kafka_archiver.spark.sink import Collected, Outcome, Sink, failed, results, unpacked
from kafka_archiver.spark.source import chunks_frame, range_read
from kafka_archiver.spark.sql_tasks import of_function, shares_by_topic, sql_frame
from kafka_archiver.store import open_store

_SETTING = "spark.local.dir"
log = logging.getLogger(__name__)
SESSION = {
    # Spark computes the size of an Arrow batch again for every row, at a cost that grows with the batch.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}

_NUMPY = (NumpyArrayConverter, NumpyScalarConverter)
_EXECUTOR_JAVA = "spark.executor.extraJavaOptions"


class SparkEngine:
    """Writes chunks with Spark, in one action a run. Starts Spark on the first `write`.

    :param url, options: the store.
    :param kafka: librdkafka's client properties.
    :param keys: the secret keys of transforms by name.
    """

    def __init__(
        self,
        url: str,
        options: dict[str, str],
        kafka: dict[str, str],
        limits: Limits,
        reader: Reader = "auto",
        keys: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._keys = dict(keys)
        self._url, self._options, self._kafka, self._limits, self._reader = url, options, kafka, limits, reader

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write the chunks' objects, which are invisible until their uploads are completed.

        :param chunks: the plan's chunks, without offsets that the log has lost.
        :raises ArchiverError: the job failed; all its uploads are aborted.
        """
        aside = job.aside
        # Spark's source reads whole chunks.
        by_frame = self._reader == "spark" and not plan.letters and not (aside and aside.unread)
        sql = plan.settings.transform and plan.settings.transform.sql
        context = session(plan.archive).sparkContext if by_frame or sql else spark_context(plan.archive)
        log.info("%s%s, UI %s", APPLICATION, context.applicationId, context.uiWebUrl)
        done = count(1)
        progress = ChunkProgress(len(chunks), sum(chunk.end - chunk.start for chunk in chunks))

        def report(outcome: Outcome, seconds: float) -> None:
            if isinstance(outcome, ChunkResult):
                log.info("chunk %d of %d: %s", next(done), len(chunks), describe(outcome, seconds))
                if line := progress.add(outcome.chunk.end - outcome.chunk.start):
                    log.info("%s", line)
            else:
                # End the job early: its other results would be thrown away.
                context.cancelAllJobs()

        collected = context.accumulator([], Collected(report))
        sink = Sink(plan, self._url, self._options, self._limits, job.with_keys(self._keys), collected, tries(context))
        read = reader_of(sink, self._kafka)
        tasks: list[list[Chunk]] = []
        try:
            if sql:
                tasks = [] if by_frame else shares_by_topic(context, chunks)
                frame = sql_frame(session(plan.archive), chunks, self._kafka, sink, sql, by_frame)
                outcomes = self._collected(plan, chunks, frame)
            elif by_frame:
                outcomes = self._by_frame(plan, chunks, sink)
            else:
                tasks = share(chunks, context.defaultParallelism)
                outcomes = unpacked(write_in_tasks(context, tasks, read, sink))
            if failure := failed(outcomes):
                raise failure
        except Exception as error:
            reported = unpacked(collected.value)
            abort(results(reported), open_store(self._url, self._options))
            failure = failed(reported)
            if sql and sql.function and not failure and (function := of_function(error, sql.function)):
                failure = located(function, session(plan.archive), chunks, self._kafka, sink, sql)
            if not failure and process_ended(str(error)):
                written = {result.chunk for result in results(reported)}
                number = failed_task(str(error))
                some = (
                    tasks[number]
                    if tasks and number is not None
                    else [chunk for chunk in chunks if chunk not in written]
                )
                failure = explained(search(context, some, read, sink), error, plan.settings)
            raise (failure or understand(error)) from error
        return results(outcomes)

    def _by_frame(self, plan: Plan, chunks: Sequence[Chunk], sink: Sink) -> list[Outcome]:
        """Write the chunks with Spark's Kafka source."""
        settings = read_settings(plan.settings, sink.job)
        frame = chunks_frame(session(plan.archive), chunks, settings, self._kafka)
        return self._collected(plan, chunks, frame.mapInArrow(sink.write_frame, "task int, result binary"))

    def _collected(self, plan: Plan, chunks: Sequence[Chunk], written: DataFrame) -> list[Outcome]:
        """The outcomes of a frame that writes the chunks."""
        rows = written.collect()
        empty = [range_read(written, row["task"]) for row in rows if row["result"] is None]
        planned = {(chunk.name, chunk.range) for chunk in chunks}
        wholes = [whole_chunk(plan, name, read.start) for name, read in empty if (name, read) in planned]
        return [*unpacked(row["result"] for row in rows if row["result"]), *map(nothing_there, wholes)]


def tries(context: SparkContext) -> int:
    """Return the number of times that Spark tries a task: once with a local master, unless the master has a number
    (`local[2,4]`).
    """
    local = re.fullmatch(r"local(?:\[[^,\]]+(?:,\s*(\d+)\s*)?\])?", str(context.master))
    return int(local[1] or 1) if local else int(str(context.getConf().get("spark.task.maxFailures", "4")))


def session(archive: str) -> SparkSession:
    """The Spark session of a job. Settings of spark-submit have precedence over our defaults."""
    builder = SparkSession.builder.appName(f"archive {archive}")
    conf = _submitted()
    _convert_numpy(True)
    settings = SESSION if _room_for_sockets(conf) else {**SESSION, "spark.python.unix.domain.socket.enabled": "false"}
    for key, value in settings.items():
        builder = builder.config(key, str(conf.get(key, value)))
    java = f"{conf.get(_EXECUTOR_JAVA, '')} {LOCALE}".strip()
    return builder.config(_EXECUTOR_JAVA, java).config(map=dict(local_dirs(conf))).getOrCreate()


def spark_context(archive: str) -> SparkContext:
    """Spark without SQL: enough for the native reader, and much faster to start than a session."""
    _convert_numpy(False)
    conf = _submitted()
    return SparkContext.getOrCreate(conf.setAll(list(local_dirs(conf).items())).setAppName(f"archive {archive}"))


def _convert_numpy(sql: bool) -> None:
    """Let NumPy values be sent to the JVM only for SQL: PySpark imports pandas for it, in a quarter of a CPU second."""
    of_pyspark = [each for each in INPUT_CONVERTER if not isinstance(each, _NUMPY)]
    INPUT_CONVERTER[:] = [NumpyArrayConverter(), *of_pyspark, NumpyScalarConverter()] if sql else of_pyspark


def _submitted() -> SparkConf:
    """The settings of spark-submit. Without a connection to the JVM, SparkConf would be empty."""
    SparkContext._ensure_initialized()
    return SparkConf()


def _room_for_sockets(conf: SparkConf) -> bool:
    """Return True if the path of a socket in the temporary directory fits the limit of 107 bytes, of which Spark adds
    42.
    """
    place = SparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")  # type: ignore[union-attr]
    return conf.contains("spark.python.unix.domain.socket.dir") or len(os.fsencode(place)) <= 65


def local_dirs(conf: SparkConf) -> dict[str, str]:
    """Settings for the Spark context that this process will start.

    The process removes the directories at its end; after a kill, the next job on this machine removes them.

    :param conf: the settings of spark-submit.
    """
    chosen = conf.get(_SETTING)
    # The cluster manager cleans up executors, and the driver in cluster mode.
    elsewhere = conf.get("spark.submit.deployMode") == "cluster" or "SPARK_LOCAL_DIRS" in os.environ
    if chosen is None or elsewhere or SparkContext._active_spark_context:
        return {}
    locks = ExitStack()
    atexit.register(locks.close)
    return {_SETTING: ",".join(_locked(directory.strip(), locks) for directory in chosen.split(","))}


def _locked(chosen: str, locks: ExitStack) -> str:
    try:
        Path(chosen).mkdir(parents=True, exist_ok=True)
        return str(locks.enter_context(working_directory(Path(chosen))))
    except (OSError, TransientError):
        # Spark reports the error itself, and uses another directory of the list.
        return chosen

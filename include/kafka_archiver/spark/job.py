"""The archive job: the chunks of a run's plan → a reader → the writer → the manifest. One action a run."""

import logging
import pickle
from collections.abc import Sequence
from typing import Literal

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from kafka_archiver.errors import ArchiverError, PermanentError, PolicyError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import ENCODING, Chunk, Plan
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.failures import understand
from kafka_archiver.spark.finish import finish
from kafka_archiver.spark.native import write_natively
from kafka_archiver.spark.sink import Collected, Sink
from kafka_archiver.spark.source import chunks_frame
from kafka_archiver.store import open_store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits

log = logging.getLogger(__name__)
# auto is native as long as no transform is written in Spark.
Reader = Literal["auto", "spark", "native"]

SESSION = {
    # The size of an Arrow batch is computed anew for every row, at a cost that grows with its rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}


class ArchiveJob:
    """Archives runs one after the other in one Spark session, which is started only when there is something to read."""

    def __init__(
        self,
        archive: str,
        url: str,
        kafka: dict[str, str],
        store: dict[str, str],
        limits: Limits,
        reader: Reader = "auto",
        lost_offsets: str = "fail",
    ) -> None:
        self._archive, self._url, self._kafka, self._options, self._limits = archive, url, kafka, store, limits
        self._reader, self._lost_offsets = reader, lost_offsets
        self._cluster = Cluster(kafka)
        self._store = open_store(url, store)
        self._ledger = Ledger(self._store, archive)

    def run(self, run: str) -> Manifest:
        """Write the objects and the manifest of one planned run.

        :raises ArchiverError: Permanent- or TransientError; nothing of this attempt is visible then.
        """
        plan = self._ledger.plan(run)
        if plan is None:
            raise PermanentError(f"run {run} of archive {self._archive} has no plan; run the task `plan` first")
        if plan.settings.encoding != ENCODING:
            raise PermanentError(
                f"run {run} was planned for encoding {plan.settings.encoding}, this code writes {ENCODING}: it would "
                "not give the same bytes. Finish the run with the release that planned it"
            )
        self._refuse_other_topics(plan)
        names = [p.name for p in plan.partitions]
        chunks = self._readable(plan, self._cluster.log_starts(names))
        log.info("archiving run %s: %s offsets in %d chunks", run, f"{plan.count:,}", len(chunks))
        results = self._write(plan, chunks) if chunks else []
        try:
            manifest = finish(
                plan, results, self._cluster.log_starts(names), self._lost_offsets, self._store, self._ledger
            )
        except ArchiverError:
            abort(results, self._store)
            raise
        log.info(
            "run %s: %s records in %d objects, %s bytes",
            run,
            f"{manifest.rows:,}",
            len(manifest.objects),
            f"{sum(o.bytes for o in manifest.objects):,}",
        )
        return manifest

    def _refuse_other_topics(self, plan: Plan) -> None:
        ids = {p.topic: p.topic_id for p in plan.partitions}
        for topic in self._cluster.topics(ids):
            if topic.id != ids[topic.name]:
                raise PolicyError(
                    f"topic {topic.name} was deleted and made again since run {plan.run} was planned: it was "
                    f"{ids[topic.name]} and is {topic.id}. The planned offsets mean other records now "
                    "(policies.recreated_topic: fail)"
                )

    def _readable(self, plan: Plan, log_starts: dict[TopicPartition, int]) -> list[Chunk]:
        """The chunks, each from where the log still has it. A shortened one is accounted for when all is read."""
        replayed = self._ledger.manifest(plan.run) is not None
        readable = []
        for chunk in plan.chunks():
            start = log_starts[chunk.name]
            if start > chunk.start and not replayed and self._lost_offsets != "record_loss":
                raise PolicyError(
                    f"retention removed the records of {chunk} before {start} since the plan was made. To go on and "
                    "have them shown as lost for ever set `policies.lost_offsets: record_loss` and clear the task "
                    "`archive` (policies.lost_offsets: fail)"
                )
            if start < chunk.end:
                readable.append(chunk.model_copy(update={"start": max(chunk.start, start)}))
        return readable

    def _write(self, plan: Plan, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        context = session(self._archive).sparkContext if self._reader == "spark" else spark_context(self._archive)
        done = 0

        def report(result: ChunkResult, seconds: float) -> None:
            nonlocal done
            done += 1
            log.info(
                "chunk %d of %d: %s: %s records in %d objects, %.1f MB, %s records/s",
                done,
                len(chunks),
                result.chunk,
                f"{result.account.archived:,}",
                len(result.objects),
                sum(o.upload.size for o in result.objects) / 1e6,
                f"{result.account.archived / max(seconds, 1e-6):,.0f}",
            )

        collected = context.accumulator([], Collected(report))
        sink = Sink(plan, self._url, self._options, self._limits, collected)
        try:
            if self._reader == "spark":
                frame = chunks_frame(session(self._archive), chunks, plan.settings, self._kafka)
                rows = frame.mapInArrow(sink.write_frame, "result binary").collect()
                results = [row["result"] for row in rows]
            else:
                results = write_natively(context, chunks, self._kafka, sink)
        except Exception as error:
            abort([pickle.loads(item)[0] for item in collected.value], self._store)
            raise understand(error) from error
        return [pickle.loads(result)[0] for result in results]


def session(archive: str) -> SparkSession:
    """The Spark session of a job; what spark-submit was told goes before our defaults."""
    builder = SparkSession.builder.appName(f"archive {archive}")
    told = SparkConf()
    for key, value in SESSION.items():
        builder = builder.config(key, str(told.get(key, value)))
    return builder.getOrCreate()


def spark_context(archive: str) -> SparkContext:
    """Spark without SQL: all that the native reader needs, and a fraction of a session's start."""
    return SparkContext.getOrCreate(SparkConf().setAppName(f"archive {archive}"))

"""The archive job: the chunks of a run's plan → an engine that writes them → the manifest. Knows no Spark itself."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_archiver.errors import ArchiverError, PermanentError, PolicyError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import ENCODING, BadRecord, Chunk, Plan
from kafka_archiver.policy import choose
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.finish import Choice, finish
from kafka_archiver.store import Store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult

log = logging.getLogger(__name__)


class Engine(Protocol):
    """Writes chunks, somewhere; see :class:`kafka_archiver.spark.engine.SparkEngine`."""

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        """Write the chunks' objects, invisible until somebody completes them."""


@dataclass(frozen=True, slots=True)
class ArchiveJob:
    """Archives runs one after the other. `choice`: the archive's policies as they are today."""

    cluster: Cluster
    store: Store
    ledger: Ledger
    engine: Engine
    choice: Choice

    def run(self, run: str) -> Manifest:
        """Write the objects and the manifest of one planned run.

        :raises ArchiverError: Permanent- or TransientError; nothing of this attempt is visible then.
        """
        plan = self.ledger.plan(run)
        if plan is None:
            raise PermanentError(f"run {run} of archive {self.ledger.archive} has no plan; run the task `plan` first")
        if plan.settings.encoding != ENCODING:
            raise PermanentError(
                f"run {run} was planned for encoding {plan.settings.encoding}, this code writes {ENCODING}: it would "
                "not give the same bytes. Finish the run with the release that planned it"
            )
        stored = self.ledger.manifest(run)
        choice = self.choice.for_run(plan, stored)
        chunks = self._readable(plan, choice, stored is not None)
        log.info("archiving run %s: %s offsets in %d chunks", run, f"{plan.count:,}", len(chunks))
        results = self.engine.write(plan, chunks, choice.bad_record) if chunks else []
        try:
            manifest = finish(plan, stored, results, self._log_starts(plan), choice, self.store, self.ledger)
        except ArchiverError:
            abort(results, self.store)
            raise
        log.info(
            "run %s: %s records in %d objects, %s bytes",
            run,
            f"{manifest.rows:,}",
            len(manifest.objects),
            f"{sum(o.bytes for o in manifest.objects):,}",
        )
        if manifest.dead_letters:
            log.warning("run %s: %s records dead-lettered", run, f"{manifest.account['dead_lettered']:,}")
        return manifest

    def _log_starts(self, plan: Plan) -> dict[TopicPartition, int]:
        """Where each partition's log starts; behind all that is planned where the log is another one by now."""
        ids = self.cluster.topic_ids({p.topic for p in plan.partitions})
        there = [p.name for p in plan.partitions if ids[p.topic] == p.topic_id]
        starts = self.cluster.log_starts(there)
        return {p.name: starts.get(p.name, max(p.end, p.log_end)) for p in plan.partitions}

    def _readable(self, plan: Plan, choice: Choice, replayed: bool) -> list[Chunk]:
        """The chunks, each from where the log still has it. A shortened one is accounted for when all is read."""
        starts = self._log_starts(plan)
        planned = {p.name: p.topic_id for p in plan.partitions}
        readable = []
        for chunk in plan.chunks():
            start = starts[chunk.name]
            if start > chunk.start and not replayed and choice.lost_offsets != "record_loss":
                topic_id = self.cluster.topic_ids([chunk.topic])[chunk.topic]
                raise PolicyError(_gone(plan, chunk, start, topic_id, planned[chunk.name]))
            if start < chunk.end:
                readable.append(chunk.model_copy(update={"start": max(chunk.start, start)}))
        return readable


def _gone(plan: Plan, chunk: Chunk, start: int, topic_id: str | None, planned_id: str) -> str:
    if plan.supersedes:
        return (
            f"Kafka does not have the records of {chunk} before {start} any more, so run {plan.supersedes} cannot be "
            f"rebuilt; what it stored stays as it is. `airflow archive clean {plan.archive}` removes the attempt"
        )
    if topic_id == planned_id:
        found = f"retention removed the records of {chunk} before {start} since the plan was made."
    else:
        found = (
            f"topic {chunk.topic} was deleted{' and made again' if topic_id else ''} since run {plan.run} was planned, "
            f"before {chunk} was archived: it was {planned_id} and is {topic_id or 'gone'}."
        )
    return (
        f"{found} To go on and have them shown as lost for ever: {choose(plan.archive, 'lost_offsets', 'record_loss')} "
        "(policies.lost_offsets: fail)"
    )

"""The archive job: the chunks of a run's plan → an engine that writes them → the manifest. Knows no Spark itself."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_archiver.advice import choose
from kafka_archiver.errors import ArchiverError, PermanentError, PolicyError, TransientError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import ENCODING, BadRecord, Chunk, Plan
from kafka_archiver.ranges import Range, TopicPartition
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
        if stored and (other := self.ledger.superseded_by(run)):
            log.warning("run %s is left alone: %s has taken its place", run, other)
            return stored
        choice = self.choice.for_run(plan, stored)
        ids = self._topic_ids(plan)
        chunks = self._readable(plan, choice, ids, stored is not None)
        log.info("archiving run %s: %s offsets in %d chunks", run, f"{plan.count:,}", len(chunks))
        results = self.engine.write(plan, chunks, choice.bad_record) if chunks else []
        try:
            if self._topic_ids(plan) != ids:
                raise TransientError(
                    f"a topic of run {run} was deleted or made again while it was read; the next attempt sees what is "
                    "left, and `policies.lost_offsets` decides"
                )
            manifest = finish(plan, stored, results, self._logs(plan, ids), choice, self.store, self.ledger)
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

    def _topic_ids(self, plan: Plan) -> dict[str, str | None]:
        return self.cluster.topic_ids({p.topic for p in plan.partitions})

    def _logs(self, plan: Plan, ids: Mapping[str, str | None]) -> dict[TopicPartition, Range]:
        """What each partition's log has now; nothing, and behind all that is planned, where it is another one."""
        there = [p.name for p in plan.partitions if ids[p.topic] == p.topic_id]
        starts, ends = self.cluster.log_starts(there), self.cluster.log_ends(there, "read_uncommitted")
        gone = {p.name: max(p.end, p.log_end) for p in plan.partitions}
        return {n: Range(starts[n], ends[n]) if n in starts else Range(end, end) for n, end in gone.items()}

    def _readable(self, plan: Plan, choice: Choice, ids: Mapping[str, str | None], replayed: bool) -> list[Chunk]:
        """The chunks, each as far as the log still has it. A shortened one is accounted for when all is read."""
        logs = self._logs(plan, ids)
        planned = {p.name: p.topic_id for p in plan.partitions}
        readable = []
        for chunk in plan.chunks():
            log_ = logs[chunk.name]
            left = Range(max(chunk.start, log_.start), min(chunk.end, log_.end))
            if left != chunk.range and not replayed and choice.lost_offsets != "record_loss":
                raise PolicyError(_gone(plan, chunk, log_, ids[chunk.topic], planned[chunk.name]))
            if left.size:
                readable.append(chunk.model_copy(update={"start": left.start, "end": left.end}))
        return readable


def _gone(plan: Plan, chunk: Chunk, there: Range, topic_id: str | None, planned_id: str) -> str:
    if plan.supersedes:
        return (
            f"Kafka has only {there} of {chunk.name}, and not all of {chunk} any more, so run {plan.supersedes} cannot "
            f"be rebuilt; what it stored stays as it is. `airflow archive clean {plan.archive}` removes the attempt"
        )
    if topic_id == planned_id:
        found = (
            f"retention removed the records of {chunk} before {there.start} since the plan was made."
            if there.start > chunk.start
            else f"the log of {chunk.name} ends at {there.end} now, before the end of {chunk}: it was truncated."
        )
    else:
        found = (
            f"topic {chunk.topic} was deleted{' and made again' if topic_id else ''} since run {plan.run} was planned, "
            f"before {chunk} was archived: it was {planned_id} and is {topic_id or 'gone'}."
        )
    return (
        f"{found} To go on and have them shown as lost for ever: {choose(plan.archive, 'lost_offsets', 'record_loss')} "
        "(policies.lost_offsets: fail)"
    )

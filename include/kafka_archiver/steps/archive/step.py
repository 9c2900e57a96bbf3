"""The step `archive`: the chunks of a run's plan → an engine that writes them → the manifest. Independent of Spark."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_archiver.advice import choose, go_on, plan_anew
from kafka_archiver.errors import ArchiverError, PermanentError, PolicyError, TransientError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import ENCODING, Chunk, Plan
from kafka_archiver.ranges import Range
from kafka_archiver.steps.archive.finish import as_intended, finish
from kafka_archiver.steps.archive.logs import Logs, read_logs
from kafka_archiver.steps.archive.policies import ReadPolicies
from kafka_archiver.steps.archive.results import require_all
from kafka_archiver.store import Store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, WriteJob

log = logging.getLogger(__name__)


class Engine(Protocol):
    """Writes chunks, somewhere; see :class:`kafka_archiver.spark.engine.SparkEngine`."""

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write the chunks' objects. They stay invisible until their uploads are completed."""


@dataclass(frozen=True, slots=True)
class ArchiveStep:
    """Archives runs. `policies`: the archive's present policies."""

    cluster: Cluster
    store: Store
    ledger: Ledger
    engine: Engine
    policies: ReadPolicies

    def run(self, run: str) -> Manifest | None:
        """Write the objects and the manifest of one planned run. None for a run that was replaced or given up.

        :raises ArchiverError: a PermanentError or TransientError; then nothing of this attempt is visible.
        """
        plan, made = self._plan(run), self.ledger.commit(run)
        if made and made.outcome != "committed":
            log.warning("run %s is left alone: it was %s by %s", run, made.outcome.replace("_", " "), made.by)
            return None
        self.ledger.require_in_line(plan)
        source = self.ledger.written_as(plan)
        if source.settings.encoding != ENCODING:
            raise PermanentError(
                f"run {run} was planned for encoding {source.settings.encoding}, this code writes {ENCODING}: its "
                f"bytes would differ. To plan the run anew: {plan_anew(plan.archive, run)}"
            )
        stored = self.ledger.manifest(run)
        if stored and (other := self.ledger.superseded_by(run)):
            log.warning("run %s is left alone: %s has taken its place", run, other)
            return stored
        if stored is None and (written := as_intended(plan, self.ledger.intent(run).document, self.ledger)):
            return written
        policies = self.policies.for_run(plan, stored)
        logs = self._logs(source, stored)
        chunks = _readable(source, policies, logs, stored is not None)
        log.info("archiving run %s: %s offsets in %d chunks", run, f"{plan.count:,}", len(chunks))
        results = self._write(source, chunks, policies) if chunks else []
        try:
            require_all(source, chunks, results)
            now = self._logs(plan, stored)
            if not now.is_as(logs):
                raise TransientError(
                    f"a topic of run {run} was deleted, made again or cut while it was read; the next attempt reads "
                    "the remaining offsets, and `policies.lost_offsets` decides about the others"
                )
            manifest = finish(plan, stored, results, now.there, policies, self.store, self.ledger)
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

    def _plan(self, run: str) -> Plan:
        if plan := self.ledger.plan(run):
            return plan
        raise PermanentError(f"run {run} of archive {self.ledger.archive} has no plan; run the task `plan` first")

    def _write(self, plan: Plan, chunks: Sequence[Chunk], policies: ReadPolicies) -> list[ChunkResult]:
        job = WriteJob.of(plan, policies.bad_record, self.ledger.schemas(plan.fingerprints))
        try:
            return self.engine.write(plan, chunks, job)
        except PermanentError as error:
            # Two ways on: the same plan, or, because a plan never changes its settings, a new one.
            then = f"{go_on(plan.archive, plan.run)}; with other settings: {plan_anew(plan.archive, plan.run)}"
            raise PermanentError(f"{error}. Once that is fixed, {then}") from error

    def _logs(self, plan: Plan, stored: Manifest | None) -> Logs:
        return read_logs(self.cluster, plan, self.ledger.progress(), stored is not None)


def _readable(plan: Plan, policies: ReadPolicies, logs: Logs, replayed: bool) -> list[Chunk]:
    """The chunks, each as far as the log still has it. `finish` accounts for the rest of a shortened chunk."""
    planned = {p.name: p.topic_id for p in plan.partitions}
    readable = []
    for chunk in plan.chunks():
        there = logs.there[chunk.name]
        left = Range(max(chunk.start, there.start), min(chunk.end, there.end))
        if left != chunk.range and not replayed and policies.lost_offsets != "record_loss":
            raise PolicyError(_gone(plan, chunk, logs, planned[chunk.name]))
        if left.size:
            readable.append(chunk.model_copy(update={"start": left.start, "end": left.end}))
    return readable


def _gone(plan: Plan, chunk: Chunk, logs: Logs, planned_id: str) -> str:
    there, topic_id = logs.there[chunk.name], logs.ids[chunk.topic]
    if plan.supersedes and not plan.takes_over:
        return (
            f"Kafka has only {there} of {chunk.name}, and not all of {chunk} any more, so run {plan.supersedes} cannot "
            f"be rebuilt; its stored objects stay as they are. `airflow archive clean {plan.archive}` removes the "
            "attempt"
        )
    if chunk.name in logs.found and chunk.end - 1 not in there:
        found = logs.found[chunk.name]
    elif topic_id == planned_id:
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
        f"{found} To go on and record them as lost for ever: {choose(plan.archive, 'lost_offsets', 'record_loss')} "
        "(policies.lost_offsets: fail)"
    )

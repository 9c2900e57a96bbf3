"""The step `archive`: the chunks of a run's plan → an engine that writes them → the manifest. Independent of Spark."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import go_on, plan_anew, replay_again, run_now
from kafka_archiver.messages.errors import ArchiverError, PermanentError, TransientError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.set_aside import FatalRecordsError, SetAside
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult, WriteJob
from kafka_archiver.store import Store
from kafka_archiver.work.archive.dead_letters import archive_dead_letters
from kafka_archiver.work.archive.engine import Engine, require_all_results
from kafka_archiver.work.archive.finish import finish_run, intended_manifest
from kafka_archiver.work.archive.logs import Logs, read_logs
from kafka_archiver.work.archive.missing_objects import require_encoding, write_missing_objects
from kafka_archiver.work.archive.readable_chunks import policies_of_run, readable_chunks
from kafka_archiver.work.archive.set_aside import freeze_fatal_records, set_aside_of

log = logging.getLogger(__name__)


class _Written(NamedTuple):
    """The results of an engine. `chunks`: those of which it has read anything. `aside`: what they leave out."""

    chunks: Sequence[Chunk]
    results: list[ChunkResult]
    aside: SetAside | None


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
        plan, commit = self._plan(run), self.ledger.commit(run)
        if commit and commit.outcome != "committed":
            log.warning("run %s is left alone: it was %s by %s", run, commit.outcome.replace("_", " "), commit.by)
            return None
        self.ledger.require_in_line(plan)
        source = self.ledger.written_as(plan)
        stored = self.ledger.manifest(run)
        if not (stored and source.keeps):
            require_encoding(source)
        if stored and (other := self.ledger.superseded_by(run)):
            log.warning("run %s is left alone: %s has taken its place", run, other)
            return stored
        if stored is None and (written := intended_manifest(plan, self.ledger.intent(run).document, self.ledger)):
            return written
        policies = policies_of_run(self.policies, plan, stored)
        if stored and source.keeps:
            return write_missing_objects(plan, stored, self.engine, self.cluster, self.store, self.ledger)
        if source.letters:
            return archive_dead_letters(plan, self, policies, self.store, self.ledger)
        logs = self._logs(source, stored)
        aside = set_aside_of(self.ledger, source.run, stored)
        chunks: Sequence[Chunk] = readable_chunks(source, policies, logs, stored is not None)
        log.info("archiving run %s: %s offsets in %d chunks", run, f"{plan.count:,}", len(chunks))
        schemas, keys = self.ledger.schemas(source.fingerprints), self.ledger.keys_of(source)
        job = WriteJob.of(source, policies.bad_record, schemas, keys, aside)
        chunks, results, aside = self._write(source, chunks, job)
        try:
            require_all_results(source, chunks, results)
            logs_after = self._logs(plan, stored)
            if not logs_after.is_as(logs):
                raise TransientError(
                    f"a topic of run {run} was deleted, made again or cut while it was read; the next attempt reads "
                    "the remaining offsets, and `policies.lost_offsets` decides about the others"
                )
            if regained := logs_after.regained(logs, plan):
                raise TransientError(
                    f"{regained[0]} has offsets of run {run} that it did not have when the run was read: another "
                    "broker leads, or one that may lead no more has answered; the next attempt reads them"
                )
            manifest = finish_run(plan, stored, results, logs_after.ranges, policies, self.store, self.ledger, aside)
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
        raise PermanentError(
            f"run {run} of archive {self.ledger.archive} has no plan in {self.store.url}: it was deleted, or "
            "`store.url` was changed since the task `plan`.",
            *advise(run_now(self.ledger.archive), " starts a run that plans again"),
        )

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write chunks with the engine, without records that end a process; to a permanent error, add how to go on."""
        return self._write(plan, chunks, job).results

    def _write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> "_Written":
        """Write chunks as `write`. What they leave out may be more than `job` says: others set it aside meanwhile."""
        frozen = self.ledger.manifest(plan.run) is not None
        try:
            while True:
                read = job.aside.not_given_up(chunks) if job.aside else chunks
                try:
                    results = self.engine.write(plan, read, job) if read else []
                except FatalRecordsError as fatal:
                    job = freeze_fatal_records(self.ledger, plan, job, fatal)
                    continue
                aside = job.aside if frozen else self.ledger.set_aside(plan.run).document
                if aside == job.aside:
                    return _Written(read, results, aside)
                # Another attempt has found a record that has ended no process of this one, or somebody gave up offsets.
                abort(results, self.store)
                job = replace(job, aside=aside)
        except PermanentError as error:
            if plan.letters:
                again = replay_again(plan.archive, plan.supersedes or plan.run)
                raise error.advised(*advise("Nothing has changed; once that is fixed, ", again)) from error
            # Two ways on: the same plan, or, because a plan never changes its settings, a new one.
            transform = plan.settings.transform
            code = " or other code of `transform`" if transform and transform.has_code else ""
            ways_on = advise(
                "Once that is fixed, ",
                go_on(plan.archive, plan.run),
                f"; with other settings{code}: ",
                plan_anew(plan.archive, plan.run),
            )
            raise error.advised(*ways_on) from error

    def _logs(self, plan: Plan, stored: Manifest | None) -> Logs:
        return read_logs(self.cluster, plan, self.ledger.progress(), stored is not None)

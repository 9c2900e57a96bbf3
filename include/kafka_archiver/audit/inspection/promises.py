"""The promises of the runs of the line, added one after the other, and the proofs and progress that these give."""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_archiver.audit.derived import repair_advice
from kafka_archiver.audit.documents import Run, check_documents
from kafka_archiver.audit.inspection.promise_table import PromiseTable
from kafka_archiver.audit.inspection.reading import DocumentReader
from kafka_archiver.audit.object_findings import twice
from kafka_archiver.audit.report import error
from kafka_archiver.audit.tiling import Tiling, check_lost
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.registry import form_of
from kafka_archiver.model.manifest import Commit, Manifest, Settled
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.settings import Settings
from kafka_archiver.model.settling import Settling


class Replay:
    """Settles runs again, in the order of the line, as `close_hours` did. `progress`: after the last run."""

    def __init__(self, archive: str, table: PromiseTable) -> None:
        self.progress = Progress(archive=archive)
        self._table = table

    def settle(
        self, plan: Plan, commit: Commit, manifest: Manifest | None, superseded: Manifest | None, ahead: bool
    ) -> Settled:
        """Settle the next run. Returns what settling it does.

        :param ahead: the run is not settled yet, but some of its proofs may be written.
        """
        settling = Settling(self.progress, plan, commit.outcome, manifest, superseded, commit.committed_at)
        hours = set(settling.hours)
        if settling.reaches:
            hours |= {hour for hour in self._table.hours() if settling.may_change(hour)}
        after = []
        for hour in hours:
            own = self._table.proof(hour)
            known = settling.known(hour, own)
            replaced = self._table.contribution(hour, plan.supersedes) if plan.supersedes else None
            proof = settling.prove(hour, known, replaced)
            if proof is not known:
                self._table.prove(proof, ahead)
            if own or proof is not known:
                after.append(proof)
        if not ahead:
            self.progress = settling.after
        return settling.done(after)


class Replaced(NamedTuple):
    """The run that has replaced another one; `removed`: it should have removed the other's objects."""

    by: str
    removed: bool


class Promises:
    """All promises of the runs, in the table. Runs are added one at a time, and not kept in memory.

    `replay`: the progress; `broken`: runs whose documents are not those that were committed, without which the right
    proofs and progress are unknown; `unfinished`: plans whose objects may exist or not;
    `layouts`: settings with each layout of the plans;
    `schemas`: by fingerprint, the first run that names the schema; `data_keys`: the run of each id; `runs`, `rows`,
    `lost`: of the runs that count.
    """

    def __init__(self, archive: str, reader: DocumentReader, table: PromiseTable) -> None:
        self._archive, self._reader, self._table = archive, reader, table
        self._tiling = Tiling(archive)
        self.replay = Replay(archive, table)
        self.broken: list[str] = []
        self.unfinished: list[Plan] = []
        self.unsettled: list[Run] = []
        self.topics: set[str] = set()
        self.schemas: dict[str, str] = {}
        self.snapshots: dict[tuple[str, str], str] = {}
        self.layouts: dict[PathForm, Settings] = {}
        self.data_keys: dict[str, str] = {}
        self.runs = self.rows = self.lost = 0
        self._ahead = False

    def take(self, number: int, run: Run | None, replaced: Replaced | None) -> Iterator[Finding]:
        """Add the next place of the line.

        :param run: None if its plan cannot be read.
        :param replaced: the committed run that has replaced it, if any.
        """
        if run is None:
            self._break(f"number {number}")
            return
        plan, outcome = run.plan, run.commit.outcome if run.commit else None
        self.topics |= {p.topic for p in plan.partitions}
        self.layouts.setdefault(form_of(plan.settings), plan.settings)
        self.schemas = {**dict.fromkeys(plan.fingerprints, run.name), **self.schemas}
        if plan.data_key:
            self.data_keys[plan.data_key] = run.name
        for name, fingerprint in (("topics", plan.topics_snapshot), ("groups", plan.groups_snapshot)):
            if fingerprint:
                self.snapshots.setdefault((name, fingerprint), run.name)
        yield from self._tiling.take(plan, outcome)
        wrong = list(check_documents(self._archive, run, self._reader.unreadable))
        yield from wrong
        sound = not any(f.kind not in ("plan-missing", "intent-changed") for f in wrong)
        if not run.settled:
            self.unsettled.append(run)
        if outcome is None and not run.settled:
            # It is unknown which objects it has written so far.
            self.unfinished.append(plan)
        elif not sound or (run.settled and outcome is None) or (run.committed and run.manifest is None):
            self._break(run.name)
            self.unfinished.append(plan)
        elif outcome:
            yield from self._settle(run)
        if outcome in ("replaced", "given_up"):
            # Its objects may be there until `clean` removes them.
            self._table.replace(run.visible, "")
        if run.manifest and run.committed:
            yield from self._promise(run, run.manifest, replaced)

    def _break(self, run: str) -> None:
        self.broken.append(run)

    def _settle(self, run: Run) -> Iterator[Finding]:
        if self.broken or (self._ahead and not run.settled) or run.commit is None:
            return
        # Only the next unsettled run can have written proofs already.
        self._ahead = not run.settled
        # A rebuild that was given up has removed nothing.
        manifest, superseded = (run.manifest, self._final(run.plan.supersedes)) if run.committed else (None, None)
        settled = self.replay.settle(run.plan, run.commit, manifest, superseded, ahead=not run.settled)
        if run.settled and run.done != settled:
            key = run_document(self._archive, run.name, "settled")
            actual = "nothing" if run.done is None else _hours(run.done)
            expected = f"{_hours(settled)}, as the manifests give it"
            yield error("settled-wrong", key, actual, expected, repair_advice(self._archive))

    def _final(self, run: str | None) -> Manifest | None:
        """The manifest of a run, if the run was final."""
        if run is None:
            return None
        commit = self._reader.commit(run)
        return self._reader.manifest(run) if commit and commit.outcome == "committed" else None

    def _promise(self, run: Run, manifest: Manifest, replaced: Replaced | None) -> Iterator[Finding]:
        if replaced is None:
            self.runs += 1
            self.rows += manifest.rows
            self.lost += manifest.account["lost"]
            for key, other in self._table.promise(manifest):
                yield twice(self._archive, key, run.name, other)
            yield from check_lost(manifest)
        else:
            self._table.replace((o.key for o in manifest.stored), replaced.by if replaced.removed else "")

    def gaps(self) -> Iterator[Finding]:
        """Offsets that no plan has."""
        return self._tiling.gaps()


def _hours(settled: Settled) -> str:
    stretches = f", stretches {settled.stretches}" if settled.stretches else ""
    return f"closed {settled.closed}, changed {settled.changed}{stretches}"

"""Checks each run's documents: complete, unchanged since the commit, and an account of every planned offset."""

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_archiver.audit.object_findings import may_have_written
from kafka_archiver.audit.report import error
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Commit, Intent, Manifest, Settled, discrepancies
from kafka_archiver.model.object_keys import (
    audit_document,
    is_adopted_document,
    is_restore_document,
    line_document,
    probe_prefix,
    progress_document,
    run_document,
    run_prefix,
    schema_document,
    snapshot_document,
    split_acknowledged_document,
    split_hour_document,
    split_key_document,
    split_line_document,
    split_run_document,
    split_schema_document,
    split_snapshot_document,
)
from kafka_archiver.model.plan import Plan

RUN_DOCUMENTS = frozenset({"plan", "set_aside", "intent", "manifest", "commit", "settled"})
RESTORE = "Restore it from a version or copy of the bucket"


@dataclass(frozen=True, slots=True)
class Run:
    """One plan of the line, with all documents of its run. `settled`: by the progress, its hours are proved."""

    plan: Plan
    copy: Plan | None
    intent: Intent | None
    manifest: Manifest | None
    commit: Commit | None
    done: Settled | None
    settled: bool

    @property
    def name(self) -> str:
        """The run's name in the ledger."""
        return self.plan.run

    @property
    def committed(self) -> bool:
        return self.commit is not None and self.commit.outcome == "committed"

    @property
    def visible(self) -> set[str]:
        """The keys of the objects that its attempts say they may have made visible, without kept ones."""
        written = self.manifest.stored if self.manifest and not self.plan.keeps else ()
        return {*(self.intent.keys if self.intent else ()), *(o.key for o in written)}


def check_documents(archive: str, run: Run, unreadable: set[str]) -> Iterator[Finding]:
    """The missing or changed documents of a run.

    :param unreadable: keys of documents that exist but cannot be read. They have a finding already.
    """

    def missing(name: str, what: str) -> Iterator[Finding]:
        key = run_document(archive, run.name, name)
        if key not in unreadable:
            how = advise(
                repair(archive), f" restores it if the run's other documents have its content. Else: {RESTORE}"
            )
            yield error(f"{name}-missing", key, "nothing", what, how if name == "manifest" else RESTORE, run.name)

    ended = run.commit is not None or run.settled
    state = "settled" if run.settled else "committed"
    if run.copy is None and ended:
        key = run_document(archive, run.name, "plan")
        if key not in unreadable:
            what = f"the plan of a run that is {state}, as it stands in the line"
            yield error(
                "plan-missing", key, "nothing", what, advise(repair(archive), " copies it from the line"), run.name
            )
    elif run.copy and run.copy != run.plan:
        yield _changed(archive, run.name, "plan", run.copy.digest, run.plan.digest, "the line")
    if run.commit is None and run.settled:
        yield from missing("commit", "the commit of a run that is settled")
    if run.commit and run.commit.plan_digest != run.plan.digest:
        line = line_document(archive, run.plan.number)
        yield error(
            "plan-changed",
            line,
            f"SHA-256 {run.plan.digest}",
            f"{run.commit.plan_digest}, as commit.json says",
            advise(repair(archive), f" restores it from the run's own copy, if that is unchanged. Else: {RESTORE}"),
            run.name,
        )
    if run.manifest is None and run.committed:
        yield from missing("manifest", f"the manifest of a run that is {state}")
    if run.committed and run.manifest and run.commit and run.commit.manifest_digest != run.manifest.digest:
        expected = run.commit.manifest_digest or ""
        yield _changed(archive, run.name, "manifest", run.manifest.digest, expected, "commit.json")
    if run.manifest:
        yield from _account(archive, run.plan, run.manifest)
    # The intent of a repair names no objects: other runs wrote them.
    if run.intent and run.manifest and run.committed and run.plan.origin != "repair":
        yield from _intent(archive, run.intent, run.plan, run.manifest)


def _account(archive: str, plan: Plan, manifest: Manifest) -> Iterator[Finding]:
    for sentence in discrepancies(plan, manifest):
        key = run_document(archive, plan.run, "manifest")
        yield error("account-wrong", key, sentence, "an account of every offset of the plan, once", RESTORE)


def _intent(archive: str, intent: Intent, plan: Plan, manifest: Manifest) -> Iterator[Finding]:
    """Check that the intent of a final run names all objects that it wrote; else its next replay would stop."""
    wrote = {o.key for o in manifest.stored if not plan.keeps or may_have_written(plan, o.key)}
    lacking = sorted(wrote - set(intent.keys))
    if not intent.closed and lacking and manifest.chunks:
        key = run_document(archive, manifest.run, "intent")
        description = f"an intent that does not name {len(lacking)} objects, {lacking[0]} among them"
        yield error("intent-changed", key, description, "all objects of the manifest", RESTORE)


def _changed(archive: str, run: str, name: str, actual: str, expected: str, by: str) -> Finding:
    return error(
        f"{name}-changed",
        run_document(archive, run, name),
        f"SHA-256 {actual}",
        f"{expected}, as {by} says",
        advise(repair(archive), f" restores it if the other documents have its content. Else: {RESTORE}"),
        run,
    )


def schema_missing(archive: str, fingerprint: str, run: str) -> Finding:
    """The finding for a schema that is gone. `run`: the first run that names it."""
    return error(
        "schema-missing",
        schema_document(archive, fingerprint),
        "nothing",
        "a schema that the run's plan names",
        advise(
            repair(archive),
            f" restores it from the registry; the next run of its topic writes it again. Else: {RESTORE}",
        ),
        run,
    )


def snapshot_missing(archive: str, name: str, fingerprint: str, run: str) -> Finding:
    """The finding for a snapshot that is gone. `name`: topics or groups; `run`: the first run that names it."""
    return error(
        "snapshot-missing",
        snapshot_document(archive, fingerprint, name),
        "nothing",
        "a snapshot that the run's plan names; a restore would use it",
        f"{RESTORE}. The records do not need it",
        run,
    )


def check_line(archive: str, numbers: set[int], settled: int) -> Iterator[Finding]:
    """Check that the line has no holes, and ends not before the progress."""
    for number in range(1, max([settled, *numbers], default=0) + 1):
        if number not in numbers:
            yield error(
                "line-broken",
                line_document(archive, number),
                "nothing",
                "a plan at every place of the line",
                advise(repair(archive), f" restores it from plan.json of the run with this number. Else: {RESTORE}"),
            )


def displaced(archive: str, plan: Plan, other: Plan) -> Finding:
    """The finding for a run whose place in the line another run has: the run does not count."""
    return error(
        "plan-displaced",
        run_document(archive, plan.run, "plan"),
        f"the plan of a run at place {plan.number} of the line, where run {other.run} stands",
        "the plan that is in the line",
        f"Its place was deleted, and another run took the place: this run does not count. End its DAG run, then move "
        f"{run_prefix(archive)}{plan.run}/ out of the ledger. The finding `gap` shows offsets that the line then lacks",
        plan.run,
    )


def is_known(archive: str, key: str) -> bool:
    """Return True if a key below the archive's ledger may be one of its documents."""
    place = split_run_document(archive, key)
    return bool(
        (place and place[1] in RUN_DOCUMENTS)
        or split_hour_document(archive, key)
        or split_line_document(archive, key) is not None
        or split_schema_document(archive, key)
        or split_key_document(archive, key)
        or split_snapshot_document(archive, key)
        or split_acknowledged_document(archive, key)
        or is_restore_document(archive, key)
        or key in (progress_document(archive), audit_document(archive))
        or is_adopted_document(archive, key)
        # Test objects of `airflow archive doctor`, running or killed.
        or key.startswith(probe_prefix(archive))
    )

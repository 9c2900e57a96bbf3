"""Each run's documents: all there, those that were committed, and an account of the plan."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka_archiver.audit.objects import UNEXPLAINED
from kafka_archiver.audit.report import Finding, error
from kafka_archiver.keys import (
    audit_document,
    probe_prefix,
    progress_document,
    run_document,
    split_hour_document,
    split_run,
    split_run_document,
)
from kafka_archiver.manifest import Commit, Manifest, discrepancies
from kafka_archiver.plan import Plan

RUN_DOCUMENTS = frozenset({"plan", "intent", "manifest", "commit"})
RESTORE = "Restore it from a version or copy of the bucket"


@dataclass(frozen=True, slots=True)
class Run:
    """A run's documents but for its manifest, which may be large. `listed`: the names of those that are there."""

    name: str
    listed: frozenset[str]
    plan: Plan | None
    commit: Commit | None

    @property
    def committed(self) -> bool:
        """Whether it is final, or was said to be."""
        return "commit" in self.listed

    @property
    def interval(self) -> str:
        """The name of the run of which it is a revision."""
        return self.name.partition("+")[0]


def missing_documents(archive: str, runs: Iterable[Run], settled: Collection[str]) -> Iterator[Finding]:
    """Documents that must be there: all three of a committed or settled run, the plan of any other."""
    known = {run.name: run for run in runs}
    for name in sorted({*known, *settled}):
        listed = known[name].listed if name in known else frozenset()
        final = "commit" in listed or name in settled
        for document in ("plan", "manifest", "commit") if final else ("plan",):
            if document not in listed:
                state = "settled" if name in settled else "committed" if final else "begun"
                yield error(
                    f"{document}-missing",
                    run_document(archive, name, document),
                    "nothing",
                    f"the {document} of a run that is {state}",
                    f"{RESTORE}. Until then nobody can say what the run has",
                )


def changed_documents(archive: str, run: Run, manifest: Manifest | None) -> Iterator[Finding]:
    """Documents that are not those that were committed, and manifests that do not account for their plans."""
    plan, commit = run.plan, run.commit
    if commit and plan and commit.plan_digest != plan.digest:
        yield _changed(archive, run, "plan", plan.digest, commit.plan_digest)
    if commit and manifest and commit.manifest_digest != manifest.digest:
        yield _changed(archive, run, "manifest", manifest.digest, commit.manifest_digest)
    if plan and manifest:
        for sentence in discrepancies(plan, manifest):
            yield error(
                "account-wrong",
                run_document(archive, run.name, "manifest"),
                sentence,
                "an account of every offset of the plan, once",
                RESTORE,
            )


def _changed(archive: str, run: Run, name: str, found: str, expected: str) -> Finding:
    return error(
        f"{name}-changed",
        run_document(archive, run.name, name),
        f"SHA-256 {found}",
        f"{expected}, as commit.json says",
        f"{RESTORE}: a run that is final does not change",
    )


def unknown_documents(archive: str, keys: Iterable[str]) -> Iterator[Finding]:
    """Keys below the archive's ledger that are no document of it."""
    for key in keys:
        place = split_run_document(archive, key)
        known = (
            (place and place[1] in RUN_DOCUMENTS)
            or split_hour_document(archive, key)
            or key in (progress_document(archive), audit_document(archive))
            # What a doctor at work, or one that was killed, tries the store with.
            or key.startswith(probe_prefix(archive))
        )
        if not known:
            yield error(UNEXPLAINED, key, "a key that is no document of the ledger", "none", "Look who put it there")


def current(runs: Iterable[Run]) -> dict[str, Run]:
    """The committed run that counts for each interval: of several revisions the highest."""
    found: dict[str, Run] = {}
    for run in sorted(runs, key=lambda r: split_run(r.name)):
        if run.committed:
            found[run.interval] = run
    return found


def in_order(runs: Iterable[Run]) -> list[tuple[Run, Plan, Commit]]:
    """Committed runs in the order in which they were settled."""
    readable = [(r, r.plan, r.commit) for r in runs if r.plan and r.commit]
    return sorted(readable, key=lambda r: (r[2].committed_at, r[1].planned_at, r[0].name))


def superseded(runs: Mapping[str, Run]) -> dict[str, Run]:
    """Runs that a committed rebuild has replaced, each with that rebuild."""
    return {r.plan.supersedes: r for r in runs.values() if r.committed and r.plan and r.plan.supersedes}

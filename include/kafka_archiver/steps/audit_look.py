"""One look at an archive for its audit: the ledger, the listings, and what they say of each other."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from kafka_archiver.audit.derived import check_hour, check_progress
from kafka_archiver.audit.documents import (
    Run,
    changed_documents,
    current,
    in_order,
    missing_documents,
    superseded,
    unknown_documents,
)
from kafka_archiver.audit.objects import UNEXPLAINED, Explained, Stored, check_objects, may_have_written, of_this_store
from kafka_archiver.audit.replay import Replay
from kafka_archiver.audit.report import Counts, Finding, count, error, warning
from kafka_archiver.audit.tiling import check_lost, check_tiling
from kafka_archiver.errors import DocumentError
from kafka_archiver.keys import (
    DEAD_LETTER,
    LEDGER,
    decode,
    hour_document,
    ledger_prefix,
    progress_document,
    run_document,
    split_hour_document,
    split_run_document,
    topic_prefix,
)
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.proof import HourProof, Progress
from kafka_archiver.store import Store

log = logging.getLogger(__name__)
THREADS = 16
# Manifests that are read before it is their turn.
AHEAD = 32
Tell = Callable[[str], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class Look:
    """What one look found. `runs`: those that count, in the order of their commits; `progress`: as it is stored."""

    findings: list[Finding]
    runs: list[tuple[Run, Plan]]
    unfinished: list[Run]
    progress: Progress | None
    counts: Counts


def look(store: Store, archive: str, topics: Iterable[str], tell: Tell) -> Look:
    """Compare the archive's documents with each other, and its objects with them.

    :param topics: below whose prefixes to look, besides those that the ledger knows.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        return _Looking(store, Ledger(store, archive), pool, tell).look(topics)


class _Looking:
    def __init__(self, store: Store, ledger: Ledger, pool: ThreadPoolExecutor, tell: Tell) -> None:
        self._store, self._ledger, self._pool, self._tell = store, ledger, pool, tell
        self._archive = ledger.archive
        self._findings: list[Finding] = []
        self._explained = Explained()
        self._replay = Replay(ledger.archive)
        # What of the derived documents cannot be told as long as these runs are not right.
        self._broken: set[str] = set()
        self._rows = self._lost = 0

    def look(self, topics: Iterable[str]) -> Look:
        listed = sorted(s.key for s in self._store.list(ledger_prefix(self._archive)))
        self._findings += unknown_documents(self._archive, listed)
        progress = self._read(progress_document(self._archive), self._ledger.progress)
        runs = self._runs(listed)
        settled = set(progress.runs if progress else ())
        self._findings += missing_documents(self._archive, runs.values(), settled)
        self._tell(f"{self._archive}: {count(len(runs), 'run')}; reading what they promise")
        counting = current(runs.values())
        self._take(runs, counting, settled)
        plans = [r.plan for r in counting.values() if r.plan]
        begun = [r.plan for r in runs.values() if r.plan and not r.committed]
        fresh = [p for p in begun if p.supersedes is None]
        self._findings += check_tiling([(p, _is_scheduled(p, runs)) for p in [*plans, *fresh]], progress)
        hours = self._hours(listed, progress)
        if progress and not self._broken:
            self._findings += check_progress(progress, self._replay.progress)
        known = {p.topic for plan in [*plans, *begun] for p in plan.partitions}
        known |= {p.topic for p in (progress.partitions if progress else ())}
        self._objects(known | set(topics))
        promised = self._explained.promised.values()
        return Look(
            findings=self._findings,
            runs=[(run, plan) for run, plan, _ in in_order(counting.values())],
            unfinished=[r for name, r in runs.items() if name not in settled],
            progress=progress,
            counts=Counts(
                runs=len(counting),
                objects=len(promised),
                bytes=sum(stored.size for stored, _ in promised),
                rows=self._rows,
                hours=hours,
                lost=self._lost,
            ),
        )

    def _read(self, key: str, read: Callable[[], Result | None]) -> Result | None:
        """A document; None when it is not there, or is not what its key promises."""
        try:
            return read()
        except DocumentError as damage:
            text = str(damage).removeprefix(f"{self._store.url}/{key} ")
            self._findings.append(
                error("unreadable", key, text, "a document as docs/FORMAT.md has it", "Without it no run can go on")
            )
            return None

    def _runs(self, listed: Iterable[str]) -> dict[str, Run]:
        names: dict[str, set[str]] = {}
        for key in listed:
            if place := split_run_document(self._archive, key):
                names.setdefault(place[0], set()).add(place[1])

        def read(name: str) -> Run:
            def document(kind: str) -> str:
                return run_document(self._archive, name, kind)

            plan = self._read(document("plan"), lambda: self._ledger.plan(name))
            commit = self._read(document("commit"), lambda: self._ledger.commit(name))
            return Run(name, frozenset(names[name]), plan, commit)

        return {run.name: run for run in self._pool.map(read, sorted(names))}

    def _take(self, runs: Mapping[str, Run], counting: Mapping[str, Run], settled: set[str]) -> None:
        """Take in the manifests, settled runs first, in the order in which they were settled."""
        ordered = [run for run, _, _ in in_order(runs.values())]
        final = [*ordered, *(r for r in runs.values() if r.committed and r not in ordered)]
        final.sort(key=lambda run: run.name not in settled)
        self._broken |= settled - {r.name for r in ordered}
        replaced = superseded(runs)
        for number, (run, manifest) in enumerate(self._ahead(self._manifest, final), start=1):
            if number % 1000 == 0:
                self._tell(f"{self._archive}: {number:,} of {len(final):,} manifests read")
            wrong = list(changed_documents(self._archive, run, manifest))
            self._findings += wrong
            if manifest is None and run.plan:
                # Nobody knows which of these it promised; that it is gone is a finding already.
                self._explained.unfinished.append(run.plan)
            if wrong or manifest is None or run.plan is None:
                self._broken.add(run.name)
            else:
                self._settle(run.plan, manifest, run.name in settled, run.name in replaced)
            if manifest and counting.get(run.interval) is run:
                self._rows += manifest.rows
                self._lost += manifest.account["lost"]
                self._findings += self._explained.promise(manifest)
                if run.plan:
                    self._findings += check_lost(run.plan, manifest)
            elif manifest:
                self._replaced(manifest, replaced.get(run.name), settled)
        for run in runs.values():
            if not run.committed and run.plan:
                self._explained.unfinished.append(run.plan)

    def _settle(self, plan: Plan, manifest: Manifest, is_settled: bool, is_replaced: bool) -> None:
        if is_replaced:
            self._replay.keep(manifest)
        if self._broken:
            return
        if is_settled:
            self._replay.settle(plan, manifest)
        else:
            self._replay.go_on(plan, manifest)

    def _replaced(self, manifest: Manifest, by: Run | None, settled: set[str]) -> None:
        keys = [o.key for o in manifest.stored]
        if by and by.plan and by.name in settled and not by.plan.keep_superseded:
            self._explained.superseded.update(dict.fromkeys(keys, by.name))
        else:
            self._explained.keys.update(keys)

    def _manifest(self, run: Run) -> Manifest | None:
        return self._read(run_document(self._archive, run.name, "manifest"), lambda: self._ledger.manifest(run.name))

    def _hours(self, listed: Iterable[str], progress: Progress | None) -> int:
        """Compare the proofs. Returns how many there are."""
        stored = [place[0] for key in listed if (place := split_hour_document(self._archive, key))]
        if self._broken:
            self._findings.append(
                warning(
                    "not-checked",
                    f"{ledger_prefix(self._archive)}hours/",
                    f"runs whose documents are not those that were committed: {', '.join(sorted(self._broken)[:5])}",
                    "committed documents, from which the proofs and the progress can be computed again",
                    "Mend those first, then audit again",
                )
            )
            return len(stored)

        def read(hour: int | None) -> tuple[int | None, HourProof | None]:
            key = hour_document(self._archive, hour)
            return hour, self._read(key, lambda: self._ledger.hour(hour))

        first = next(iter(self._replay.order), None)
        there, strange = set(stored), None
        for hour, proof in self._pool.map(read, stored):
            if proof is None:
                continue
            self._findings += check_hour(self._archive, hour, proof, self._replay.proofs.get(hour, [None]))
            if progress is None and any(c.run != first for c in proof.runs):
                strange = hour_document(self._archive, hour)
        for hour in self._replay.proofs.keys() - there:
            self._findings += check_hour(self._archive, hour, None, self._replay.proofs[hour])
        if strange:
            self._findings.append(_no_progress(self._archive, strange))
        return len(stored)

    def _objects(self, topics: set[str]) -> None:
        prefixes = [*sorted(topic_prefix(topic) for topic in topics), f"{DEAD_LETTER}/"]
        self._tell(f"{self._archive}: listing the objects of {count(len(topics), 'topic')}")

        def listing(prefix: str) -> dict[str, Stored]:
            return {s.key: Stored(s.size, s.etag) for s in self._store.list(prefix)}

        listed = {key: stored for found in self._pool.map(listing, prefixes) for key, stored in found.items()}
        listed = {key: listed[key] for key in of_this_store(listed)}
        found = list(check_objects(listed, self._explained))
        strange = {f.where for f in found if f.kind == UNEXPLAINED}
        others = self._of_others(strange) if strange else set()
        found = [f for f in found if f.where not in others]
        self._findings += [f for f, stands in zip(found, self._pool.map(self._stands, found), strict=True) if stands]

    def _stands(self, finding: Finding) -> bool:
        """Whether it is still so: what was written or removed while we looked is no finding."""
        stat = self._store.head(finding.where)
        there = None if stat is None else Stored(stat.size, stat.etag)
        promised = self._explained.promised.get(finding.where)
        return there != (promised[0] if promised else None)

    def _of_others(self, keys: set[str]) -> set[str]:
        """Which of these keys other archives that share the store may have written."""
        found: dict[str, set[str]] = {}
        for stat in self._store.list(f"{LEDGER}/"):
            archive = decode(stat.key.split("/")[1])
            place = split_run_document(archive, stat.key) if archive != self._archive else None
            if place and place[1] == "plan":
                found.setdefault(archive, set()).add(place[0])
        if found:
            self._tell(
                f"{self._archive}: asking the ledgers of {', '.join(sorted(found))} about {count(len(keys), 'object')}"
            )

        def explain(plan_of: tuple[str, str]) -> set[str]:
            archive, run = plan_of
            plan = self._read(run_document(archive, run, "plan"), lambda: Ledger(self._store, archive).plan(run))
            return {key for key in keys if plan and may_have_written(plan, key)}

        runs = [(archive, run) for archive, names in found.items() for run in sorted(names)]
        return set().union(*self._pool.map(explain, runs))

    def _ahead(self, read: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with what is read of it, in order; a few are read before their turn, never all of them."""
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            waiting.append((item, self._pool.submit(read, item)))
            if len(waiting) > AHEAD:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for item, answer in waiting:
            yield item, answer.result()


def _is_scheduled(plan: Plan, runs: Mapping[str, Run]) -> bool:
    """Whether its run, or the one that it is a rebuild of, was scheduled."""
    first = runs.get(plan.interval.id)
    return plan.moves_group or bool(plan.supersedes and first and first.plan and first.plan.moves_group)


def _no_progress(archive: str, hour: str) -> Finding:
    return error(
        "progress-missing",
        progress_document(archive),
        f"nothing, while {hour} has records of several runs",
        "the summary of all settled runs",
        "Restore it from a version or copy of the bucket, or the next run settles every run again",
    )

"""One look at an archive: its documents, its objects, and what they say of each other."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kafka_archiver.audit.derived import check_hour, check_progress
from kafka_archiver.audit.documents import Run, in_order, missing_documents, unknown_documents
from kafka_archiver.audit.report import Counts, Finding, count, error, warning
from kafka_archiver.audit.tiling import check_tiling
from kafka_archiver.keys import hour_document, ledger_prefix, progress_document, split_hour_document
from kafka_archiver.ledger import Ledger
from kafka_archiver.plan import Plan
from kafka_archiver.proof import Progress
from kafka_archiver.steps.auditing.listing import check_listing
from kafka_archiver.steps.auditing.promises import Promises
from kafka_archiver.steps.auditing.reading import Reader, Tell
from kafka_archiver.store import Store

THREADS = 16


@dataclass(frozen=True, slots=True)
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
        reader = Reader(Ledger(store, archive), pool)
        listed = sorted(s.key for s in store.list(ledger_prefix(archive)))
        progress, runs = reader.progress(), reader.runs(listed)
        settled = set(progress.runs if progress else ())
        findings = [*unknown_documents(archive, listed), *missing_documents(archive, runs.values(), settled)]
        tell(f"{archive}: {count(len(runs), 'run')}; reading what they promise")
        promises = Promises(archive, runs, settled)
        final = promises.order()
        for number, (run, manifest) in enumerate(reader.manifests(final), start=1):
            findings += promises.take(run, manifest)
            if number % 1000 == 0:
                tell(f"{archive}: {number:,} of {len(final):,} manifests read")
        findings += check_tiling(promises.plans(), progress)
        hours = [place[0] for key in listed if (place := split_hour_document(archive, key))]
        findings += _check_derived(reader, archive, hours, progress, promises)
        known = {p.topic for run in runs.values() if run.plan for p in run.plan.partitions}
        known |= {p.topic for p in progress.partitions} if progress else set()
        known |= set(topics)
        tell(f"{archive}: listing the objects of {count(len(known), 'topic')}")
        findings += check_listing(store, archive, known, promises.explained, pool, tell)
    promised = promises.explained.promised.values()
    return Look(
        findings=[*reader.findings, *findings],
        runs=[(run, plan) for run, plan, _ in in_order(promises.counting.values())],
        unfinished=[run for name, run in runs.items() if name not in settled],
        progress=progress,
        counts=Counts(
            runs=len(promises.counting),
            objects=len(promised),
            bytes=sum(stored.size for stored, _ in promised),
            rows=promises.rows,
            hours=len(hours),
            lost=promises.lost,
        ),
    )


def _check_derived(
    reader: Reader, archive: str, hours: list[int | None], progress: Progress | None, promises: Promises
) -> Iterator[Finding]:
    """The proofs and the progress."""
    if promises.broken:
        yield warning(
            "not-checked",
            f"{ledger_prefix(archive)}hours/",
            f"runs whose documents are not those that were committed: {', '.join(sorted(promises.broken)[:5])}",
            "committed documents, from which the proofs and the progress can be computed again",
            "Mend those first, then audit again",
        )
        return
    given, first = promises.replay.proofs, next(iter(promises.replay.order), None)
    late = None
    for hour, stored in reader.hours(hours):
        if stored is not None:
            yield from check_hour(archive, hour, stored, given.get(hour, [None]))
            # Without progress nothing is settled: at most the first run had come so far.
            if {stored.changed_by, *(c.run for c in stored.runs)} != {first}:
                late = hour_document(archive, hour)
    for hour in given.keys() - set(hours):
        yield from check_hour(archive, hour, None, given[hour])
    if progress:
        yield from check_progress(progress, promises.replay.progress)
    elif late:
        yield error(
            "progress-missing",
            progress_document(archive),
            f"nothing, while {late} is of a run that followed another",
            "the summary of all settled runs",
            "Restore it from a version or copy of the bucket; else the next run settles every run again",
        )

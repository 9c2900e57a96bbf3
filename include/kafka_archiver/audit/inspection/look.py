"""One look at an archive: compare its documents and objects with each other."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kafka_archiver.audit.derived import Proved, check_hour, check_progress, repair_advice, settled_runs
from kafka_archiver.audit.documents import Run, check_line, displaced, is_known, schema_missing, snapshot_missing
from kafka_archiver.audit.inspection.listing import check_listing
from kafka_archiver.audit.inspection.promise_table import PromiseTable
from kafka_archiver.audit.inspection.promises import Promises, Replaced
from kafka_archiver.audit.inspection.reading import DocumentReader, Tell
from kafka_archiver.audit.object_findings import UNEXPLAINED, unproven
from kafka_archiver.audit.report import Counts, error, warning
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.wording import count
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.object_keys import (
    claim_document,
    interval_of,
    ledger_prefix,
    progress_document,
    schema_document,
    snapshot_document,
    split_hour_document,
    split_line_document,
    split_run,
    split_run_document,
)
from kafka_archiver.model.progress import Progress
from kafka_archiver.store import Store

THREADS = 16


@dataclass(frozen=True, slots=True)
class Comparison:
    """The table and findings of one look. `last`: the length of the line; `unsettled`: the runs behind its settled
    part; `adoption`: what the archive has of another tool.
    """

    findings: list[Finding]
    last: int
    unsettled: list[Run]
    counts: Counts
    adoption: Adoption | None = None


@dataclass(slots=True)
class _Keys:
    """The keys of the ledger: the numbers of its line, its hours, its rebuilds, the runs with a plan, the number of
    `settled.json`, and keys that are not documents of the ledger.
    """

    numbers: set[int] = field(default_factory=set)
    hours: set[int | None] = field(default_factory=set)
    revisions: dict[str, list[str]] = field(default_factory=dict)
    plans: set[str] = field(default_factory=set)
    settled: int = 0
    unknown: list[str] = field(default_factory=list)

    def take(self, archive: str, key: str) -> None:
        number, hour, run = (
            split_line_document(archive, key),
            split_hour_document(archive, key),
            split_run_document(archive, key),
        )
        if number is not None:
            self.numbers.add(number)
        elif hour and hour[1] is None:
            self.hours.add(hour[0])
        elif run and run[1] == "settled":
            self.settled += 1
        elif run and run[1] == "plan":
            self.plans.add(run[0])
        elif run and run[1] == "commit" and split_run(run[0])[1]:
            self.revisions.setdefault(interval_of(run[0]), []).append(run[0])
        if not is_known(archive, key):
            self.unknown.append(key)


def compare(store: Store, archive: str, topics: Iterable[str], tell: Tell) -> Comparison:
    """Compare the archive's documents with each other, and its objects with the documents.

    :param topics: topics to list besides those that the ledger knows.
    """
    with ThreadPoolExecutor(THREADS) as pool, PromiseTable.open() as table:
        reader = DocumentReader(Ledger(store, archive), pool)
        keys = _Keys()
        for stat in store.list(ledger_prefix(archive)):
            keys.take(archive, stat.key)
        progress = reader.progress()
        settled = settled_runs(progress.settled if progress else 0, max(keys.numbers, default=0), keys.settled)
        last = max([settled, *keys.numbers])
        tell(f"{archive}: {count(last, 'run')}; reading what they promise")
        promises = Promises(archive, reader, table)
        findings = list(_unknown(keys.unknown))
        promises.broken += [f"number {n}" for n in range(1, last + 1) if n not in keys.numbers]
        for number, run in reader.runs(sorted(keys.numbers), settled):
            findings += promises.take(number, run, _replaced_by(reader, keys, run, settled))
            keys.plans.discard(run.name if run else "")
            if number % 1000 == 0:
                tell(f"{archive}: {number:,} of {last:,} runs read")
        beyond: list[int] = []
        findings += _outside(reader, archive, keys.plans, last, beyond)
        promises.broken += [f"number {n}" for n in beyond]
        findings += check_line(archive, keys.numbers, max([settled, *beyond]))
        findings += promises.gaps()
        findings += _check_derived(reader, archive, keys.hours, progress, promises, table)
        known = {*promises.topics, *topics, *((p.topic for p in progress.partitions) if progress else ())}
        findings += _check_schemas(reader, archive, promises.schemas)
        findings += _check_snapshots(reader, archive, promises.snapshots)
        # Reading them is enough: what is gone or damaged becomes a finding of the reader.
        list(reader.data_keys(promises.data_keys))
        findings += _check_claims(reader, archive, promises.topics)
        adoption = reader.adoption()
        if adoption:
            findings.append(unproven(adoption))
            for page in reader.adopted_pages(adoption):
                table.promise_adopted(page.objects)
        tell(f"{archive}: listing the objects of {count(len(known), 'topic')}")
        findings += check_listing(
            store,
            archive,
            known,
            list(promises.layouts.values()),
            table,
            promises.unfinished,
            pool,
            tell,
            adoption.folder if adoption else None,
        )
        objects, size = table.promised()
    return Comparison(
        findings=[*reader.findings, *findings],
        last=last,
        unsettled=promises.unsettled,
        adoption=adoption,
        counts=Counts(
            runs=promises.runs,
            objects=objects,
            bytes=size,
            rows=promises.rows + (adoption.rows if adoption else 0),
            hours=len(keys.hours.union(*(stretch.hours for stretch in progress.stretches) if progress else ())),
            lost=promises.lost,
        ),
    )


def _unknown(keys: Iterable[str]) -> Iterator[Finding]:
    for key in sorted(keys):
        yield error(UNEXPLAINED, key, "a key that is not a document of the ledger", "none", "Find out who put it there")


def _outside(
    reader: DocumentReader, archive: str, runs: Iterable[str], last: int, beyond: list[int]
) -> Iterator[Finding]:
    """Findings about plans of runs that the line does not have. Each plan was in the line before it was copied.

    :param beyond: receives the numbers of plans that are missing behind the end of the line.
    """
    for run in sorted(runs):
        plan = reader.plan(run)
        if plan and (other := reader.in_place_of(plan)):
            yield displaced(archive, plan, other)
        elif plan and plan.number > last and reader.planned(plan.number) is None:
            beyond.append(plan.number)


def _replaced_by(reader: DocumentReader, keys: _Keys, run: Run | None, settled: int) -> Replaced | None:
    """The first committed revision that has replaced a run, if any; that revision decides which objects stay."""
    if run is None or not run.committed:
        return None
    later = [r for r in keys.revisions.get(run.plan.interval.id, ()) if split_run(r) > split_run(run.name)]
    for name in sorted(later, key=split_run):
        commit, plan = reader.commit(name), reader.plan(name)
        if commit and commit.outcome == "committed" and not (plan and reader.in_place_of(plan)):
            return Replaced(name, plan is not None and plan.number <= settled and not plan.keep_superseded)
    return None


def _check_schemas(reader: DocumentReader, archive: str, named: Mapping[str, str]) -> Iterator[Finding]:
    """Check that the schemas that plans name are there. `named`: a run for each fingerprint."""
    for fingerprint, schema in reader.schemas(named):
        if schema is None and schema_document(archive, fingerprint) not in reader.unreadable:
            yield schema_missing(archive, fingerprint, named[fingerprint])


def _check_snapshots(reader: DocumentReader, archive: str, named: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    """Check that the snapshots that plans name are there. `named`: a run for each name and fingerprint."""
    for place, snapshot in reader.snapshots(named):
        name, fingerprint = place
        if snapshot is None and snapshot_document(archive, fingerprint, name) not in reader.unreadable:
            yield snapshot_missing(archive, name, fingerprint, named[place])


def _check_claims(reader: DocumentReader, archive: str, topics: Iterable[str]) -> Iterator[Finding]:
    """Check that the archive has claimed each of its topics in this place."""
    for topic, owner in reader.claims(topics):
        key = claim_document(topic)
        if owner is None and key not in reader.unreadable:
            yield warning(
                "claim-missing", key, "nothing", f"a claim of {archive} on topic {topic}", "The next run writes it"
            )
        elif owner not in (None, archive):
            yield error(
                "claim-foreign",
                key,
                f"a claim of {owner} on topic {topic}",
                f"a claim of {archive}, which has objects of the topic here",
                "Two archives in one place overwrite each other: give one of them another `store.url`",
            )


def _check_derived(
    reader: DocumentReader,
    archive: str,
    hours: set[int | None],
    progress: Progress | None,
    promises: Promises,
    table: PromiseTable,
) -> Iterator[Finding]:
    """The proofs and the progress."""
    if promises.broken:
        yield warning(
            "not-checked",
            f"{ledger_prefix(archive)}hours/",
            f"runs whose documents are not those that were committed: {', '.join(promises.broken[:5])}",
            "committed documents, from which the proofs and the progress can be computed again",
            "Repair these documents first, then audit again",
        )
        return
    every = sorted({*hours, *table.hours()}, key=lambda hour: (hour is None, hour))
    for hour, stored in reader.hours(every):
        proved_hours: list[Proved | None] = [
            (proof, table.contributions(proof)) if proof else None
            for proof in (table.proof(hour), table.proof(hour, ahead=True))
        ]
        if stored is not None or hour not in hours:
            # An unreadable proof is a finding already.
            yield from check_hour(archive, hour, stored, proved_hours if proved_hours[1] else proved_hours[:1])
    if progress:
        yield from check_progress(progress, promises.replay.progress)
    elif promises.replay.progress.settled and progress_document(archive) not in reader.unreadable:
        yield error(
            "progress-missing",
            progress_document(archive),
            "nothing, while runs are settled",
            "the summary of all settled runs",
            repair_advice(archive),
        )

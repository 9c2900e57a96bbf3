"""Read the documents of an archive for its audit, several at a time. An unreadable document is a finding."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kafka_archiver.audit.derived import Proved
from kafka_archiver.audit.documents import Run
from kafka_archiver.audit.report import error
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError, IntegrityError
from kafka_archiver.model.adopted import AdoptedPage, AdoptedPartition, Adoption, PageRef
from kafka_archiver.model.data_keys import DataKeyDocument
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.object_keys import (
    adopted_page_document,
    adoption_document,
    claim_document,
    hour_document,
    key_document,
    line_document,
    progress_document,
    run_document,
    schema_document,
    snapshot_document,
)
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.schemas import Schema
from kafka_archiver.model.snapshots import Snapshot

# How many documents are read ahead.
AHEAD = 32
# Receives the progress of the audit, one line at a time.
Tell = Callable[[str], object]
Item = TypeVar("Item")
Result = TypeVar("Result")


class DocumentReader:
    """Reads one archive's ledger. `findings`: the documents that are not what their keys promise."""

    def __init__(self, ledger: Ledger, pool: ThreadPoolExecutor) -> None:
        self._ledger, self._pool = ledger, pool
        self.findings: list[Finding] = []

    @property
    def unreadable(self) -> set[str]:
        """The keys of the documents that exist but cannot be read."""
        return {finding.subject for finding in self.findings}

    def progress(self) -> Progress | None:
        return self._read(progress_document(self._ledger.archive), self._ledger.progress)

    def planned(self, number: int) -> Plan | None:
        """The plan at a place of the line."""
        return self._read(line_document(self._ledger.archive, number), lambda: self._ledger.planned(number))

    def adoption(self) -> Adoption | None:
        """The objects that the archive has adopted of another tool."""
        return self._read(adoption_document(self._ledger.archive), self._ledger.adoption)

    def adopted_pages(self, adoption: Adoption) -> Iterator[AdoptedPage]:
        """The pages of adopted objects. One that is gone or damaged is a finding."""
        for partition in adoption.partitions:
            for _, page in self._ahead(partial(self._adopted_page, partition), partition.pages):
                if page:
                    yield page

    def _adopted_page(self, partition: AdoptedPartition, ref: PageRef) -> AdoptedPage | None:
        key = adopted_page_document(self._ledger.archive, partition.topic, partition.partition, ref.number)
        return self._read(key, lambda: self._ledger.adopted_page(partition, ref))

    def in_place_of(self, plan: Plan) -> Plan | None:
        """The plan of another run at this plan's place of the line, if there is one."""
        other = self.planned(plan.number)
        return other if other and other.run != plan.run else None

    def plan(self, run: str) -> Plan | None:
        return self._read(self._key(run, "plan"), lambda: self._ledger.plan(run))

    def commit(self, run: str) -> Commit | None:
        """Return the end of a run."""
        return self._read(self._key(run, "commit"), lambda: self._ledger.commit(run))

    def manifest(self, run: str) -> Manifest | None:
        return self._read(self._key(run, "manifest"), lambda: self._ledger.manifest(run))

    def runs(self, numbers: Iterable[int], settled: int) -> Iterator[tuple[int, Run | None]]:
        """The places of the line, in order, each with the documents of its run."""

        def read(number: int) -> Run | None:
            plan = self.planned(number)
            return self._run(plan, number <= settled) if plan else None

        return self._ahead(read, numbers)

    def _run(self, plan: Plan, settled: bool) -> Run:
        run, ledger = plan.run, self._ledger
        return Run(
            plan,
            self.plan(run),
            self._read(self._key(run, "intent"), lambda: ledger.intent(run).document),
            self.manifest(run),
            self.commit(run),
            self._read(self._key(run, "settled"), lambda: ledger.settled(run)),
            settled,
        )

    def hours(self, hours: Iterable[int | None]) -> Iterator[tuple[int | None, Proved | None]]:
        """Each hour with its proof, in order."""
        return self._each(hours, partial(hour_document, self._ledger.archive), self._proved)

    def _proved(self, hour: int | None) -> Proved | None:
        proof = self._ledger.stored_hour(hour).document
        return (proof, self._ledger.contributions(proof)) if proof else None

    def schemas(self, fingerprints: Iterable[str]) -> Iterator[tuple[str, Schema | None]]:
        """Each schema that plans name."""
        return self._each(sorted(fingerprints), partial(schema_document, self._ledger.archive), self._ledger.schema)

    def snapshots(self, named: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Snapshot | None]]:
        """Each snapshot that plans name, by its name and its fingerprint."""
        reads: dict[str, Callable[[str], Snapshot | None]] = {
            "topics": self._ledger.topics_snapshot, "groups": self._ledger.groups_snapshot,
        }  # fmt: skip

        def key_of(place: tuple[str, str]) -> str:
            return snapshot_document(self._ledger.archive, place[1], place[0])

        return self._each(sorted(named), key_of, lambda place: reads[place[0]](place[1]))

    def data_keys(self, ids: Iterable[str]) -> Iterator[tuple[str, DataKeyDocument | None]]:
        """Each wrapped data key that plans name. One that is gone is a finding, too."""
        key_of = partial(key_document, self._ledger.archive)
        return self._each(sorted(ids), key_of, lambda key_id: self._ledger.data_key(key_id).document)

    def claims(self, topics: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """The archive that has claimed each topic."""
        return self._each(sorted(topics), claim_document, self._ledger.claimed)

    def _key(self, run: str, name: str) -> str:
        return run_document(self._ledger.archive, run, name)

    def _read(self, key: str, read: Callable[[], Result | None]) -> Result | None:
        try:
            return read()
        except (DocumentError, IntegrityError) as damage:
            text = str(damage).removeprefix(f"{self._ledger.store.url}/{key} ")
            expected = "a document as described in docs/FORMAT.md"
            self.findings.append(error("unreadable", key, text, expected, "Steps that need this document fail"))
            return None

    def _each(
        self, items: Iterable[Item], key_of: Callable[[Item], str], read: Callable[[Item], Result | None]
    ) -> Iterator[tuple[Item, Result | None]]:
        return self._ahead(lambda item: self._read(key_of(item), lambda: read(item)), items)

    def _ahead(self, read: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Read some items ahead, never all: manifests may be large."""
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            waiting.append((item, self._pool.submit(read, item)))
            if len(waiting) > AHEAD:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for item, answer in waiting:
            yield item, answer.result()

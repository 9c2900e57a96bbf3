"""The documents of an archive, read for its audit: several at a time, and what cannot be read is a finding."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from kafka_archiver.audit.documents import Run
from kafka_archiver.audit.report import Finding, error
from kafka_archiver.errors import DocumentError
from kafka_archiver.keys import hour_document, progress_document, run_document, split_run_document
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.proof import HourProof, Progress

# Documents that are read before it is their turn.
AHEAD = 32
# Told how far the audit is, a line at a time.
Tell = Callable[[str], object]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Reader:
    """Reads one archive's ledger. `findings`: the documents that are not what their keys promise."""

    def __init__(self, ledger: Ledger, pool: ThreadPoolExecutor) -> None:
        self._ledger, self._pool = ledger, pool
        self.findings: list[Finding] = []

    def progress(self) -> Progress | None:
        """The progress as it is stored."""
        return self._read(progress_document(self._ledger.archive), self._ledger.progress)

    def runs(self, listed: Iterable[str]) -> dict[str, Run]:
        """The runs whose documents are among these keys, by name."""
        names: dict[str, set[str]] = {}
        for key in listed:
            if place := split_run_document(self._ledger.archive, key):
                names.setdefault(place[0], set()).add(place[1])

        def read(name: str) -> Run:
            commit = self._read(self._key(name, "commit"), lambda: self._ledger.commit(name))
            return Run(name, frozenset(names[name]), self.plan(name), commit)

        return {run.name: run for run in self._pool.map(read, sorted(names))}

    def plan(self, run: str) -> Plan | None:
        """A run's plan."""
        return self._read(self._key(run, "plan"), lambda: self._ledger.plan(run))

    def manifests(self, runs: Iterable[Run]) -> Iterator[tuple[Run, Manifest | None]]:
        """Each run with its manifest, in order."""

        def read(run: Run) -> Manifest | None:
            return self._read(self._key(run.name, "manifest"), lambda: self._ledger.manifest(run.name))

        return self._ahead(read, runs)

    def hours(self, hours: Iterable[int | None]) -> Iterator[tuple[int | None, HourProof | None]]:
        """Each hour with its proof, in order."""

        def read(hour: int | None) -> HourProof | None:
            return self._read(hour_document(self._ledger.archive, hour), lambda: self._ledger.hour(hour))

        return self._ahead(read, hours)

    def _key(self, run: str, name: str) -> str:
        return run_document(self._ledger.archive, run, name)

    def _read(self, key: str, read: Callable[[], Result | None]) -> Result | None:
        try:
            return read()
        except DocumentError as damage:
            text = str(damage).removeprefix(f"{self._ledger.store.url}/{key} ")
            expected = "a document as docs/FORMAT.md has it"
            self.findings.append(error("unreadable", key, text, expected, "Nothing that needs it can go on"))
            return None

    def _ahead(self, read: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Some are read before their turn, never all: manifests may be large."""
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            waiting.append((item, self._pool.submit(read, item)))
            if len(waiting) > AHEAD:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for item, answer in waiting:
            yield item, answer.result()

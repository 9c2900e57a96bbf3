"""Deep: read every object in full, with readers that share no code with the writers."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kafka_archiver.audit.content import Pieces, is_readable, read_through, settings_of
from kafka_archiver.audit.inspection.reading import Tell
from kafka_archiver.audit.object_findings import again, of_adopted
from kafka_archiver.audit.readers import names, reader_of
from kafka_archiver.audit.readers.base import Fetch, SidecarOwner
from kafka_archiver.audit.report import error, warning
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import audit, plan_anew
from kafka_archiver.messages.errors import ColdObjectError, DocumentError, IntegrityError, PermanentError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.adopted import AdoptedObject, Adoption
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import revision_in, run_name
from kafka_archiver.model.plan import Plan
from kafka_archiver.store import Store

# Objects read at the same time; each holds one part in memory.
THREADS = 4
SECONDS = 5.0
WRONG = "content-wrong"
Item = TypeVar("Item", ObjectEntry, AdoptedObject)
Observation = TypeVar("Observation")


class Reading:
    """Reads the objects of an archive's runs. `count`: the objects read; `same`: keys whose bytes are as promised."""

    def __init__(self, store: Store, ledger: Ledger, expected: int, tell: Tell) -> None:
        self._store, self._ledger, self._expected, self._tell = store, ledger, expected, tell
        self._bytes, self._told = 0, time.monotonic()
        self.count = 0
        self.same: set[str] = set()
        self._writers: dict[str, Plan | None] = {}
        self._secrets: dict[str, bytes | None] = {}
        # Objects that the store does not read: each with the store's reason.
        self._cold: dict[str, str] = {}
        # Data keys that cannot be opened: the master key that has wrapped each, and the error.
        self._closed: dict[str, tuple[str, str]] = {}

    def read(self, numbers: Iterable[int], skip: set[str], only: set[str] | None = None) -> Iterator[Finding]:
        """The faults in the objects of runs that count, and the objects in a format without a reader.

        :param numbers: the places of the runs in the line.
        :param skip: keys of objects that are missing or have another size.
        :param only: keys of objects to read; None: all.
        """
        unread: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], tuple[str, str]] = {}
        sealed: dict[str, tuple[str, str]] = {}
        many: Counter[str] = Counter()
        with ThreadPoolExecutor(THREADS) as pool:
            for plan in filter(None, map(self._counting, numbers)):
                manifest = self._manifest(plan.run)
                entries = [o for o in manifest.stored if o.key not in skip] if manifest else []
                objects = {o.key: o for o in entries}
                entries = [o for o in entries if only is None or o.key in only]
                plans = [self._writer(plan, entry) for entry in entries]
                beside = [objects.get(o.sidecar_of or "") for o in entries]
                for entry, problems in self._each(pool, self._look, entries, plans, beside):
                    by = self._writer(plan, entry)
                    if problems and self._counting(plan.number) is None:
                        # A rebuild has replaced the run since the audit began.
                        break
                    settings = settings_of(by, entry)
                    if by.data_key and self._secret(by) is None:
                        if closed := self._closed.get(by.data_key):
                            sealed.setdefault(closed[0], (entry.key, closed[1]))
                            many[closed[0]] += 1
                    elif not is_readable(settings):
                        first.setdefault((settings.format, settings.content), (entry.key, plan.run))
                        unread[settings.format, settings.content] += 1
                    if problems:
                        yield _damaged(self._ledger.archive, entry, plan.run, problems)
                    else:
                        self.same.add(entry.key)
        for master, (key, why) in sealed.items():
            yield _not_opened(self._ledger.archive, many[master], key, master, why)
        for how, count in unread.items():
            yield _not_read(self._ledger.archive, how, count, *first[how])

    def read_adopted(self, adoption: Adoption, skip: set[str], only: set[str] | None = None) -> Iterator[Finding]:
        """The objects of another tool that have other bytes than when they were adopted. Parameters as of `read`."""
        with ThreadPoolExecutor(THREADS) as pool:
            for page in self._ledger.adopted_pages(adoption):
                items = [o for o in page.objects if o.key not in skip and (only is None or o.key in only)]
                for item, checksum in self._each(pool, self._checksum, items):
                    if checksum == item.checksum:
                        self.same.add(item.key)
                    else:
                        where, expected = f"its bytes have the checksum {checksum}", f"the checksum {item.checksum}"
                        yield of_adopted(error(WRONG, item.key, where, expected, ""))

    def cold(self, wrong: set[str]) -> Iterator[Finding]:
        """Return the findings about objects that the store does not read.

        :param wrong: keys of objects that were wrong when they were last read: nothing shows that they are mended.
        """
        archive = self._ledger.archive
        for key in sorted(wrong & self._cold.keys()):
            observed = f"it was wrong when it was last read, and cannot be read again: {self._cold[key]}"
            yield error(WRONG, key, observed, "the bytes that were written", again(archive))
        if unread := sorted(self._cold.keys() - wrong):
            yield warning(
                "content-cold",
                unread[0],
                f"{len(unread):,} objects, this one the first, were not read: {self._cold[unread[0]]}",
                "objects that can be read",
                advise(
                    "Their sizes and ETags were compared. Restore them, then audit again: ", audit(archive, deep=True)
                ),
            )

    def _each(
        self, pool: ThreadPoolExecutor, look: Callable[..., Observation], items: Sequence[Item], *more: Iterable[Any]
    ) -> Iterator[tuple[Item, Observation]]:
        """Look at objects, several at a time. Yield each that the store reads, with what was observed.

        :param more: further arguments of `look`, one of each for every item.
        """

        def tried(*item: Any) -> Observation | ColdObjectError:
            try:
                return look(*item)
            except ColdObjectError as cold:
                return cold

        for item, observed in zip(items, pool.map(tried, items, *more), strict=True):
            if isinstance(observed, ColdObjectError):
                self._cold[item.key] = str(observed)
            else:
                self._advance(item)
                yield item, observed

    def _checksum(self, item: AdoptedObject) -> str:
        """Return the checksum of an object, with as many bytes as it had; or that it is truncated."""
        try:
            pieces = Pieces(item.bytes, lambda start, length: self._store.read(item.key, start, length) or b"")
            return pieces.checksum()
        except EOFError as damage:
            return str(damage)

    def _counting(self, number: int) -> Plan | None:
        """The plan at a place of the line, if its run is final and not superseded."""
        try:
            plan = self._ledger.planned(number)
            commit = self._ledger.commit(plan.run) if plan else None
            final = commit is not None and commit.outcome == "committed"
            return plan if plan and final and self._ledger.superseded_by(plan.run) is None else None
        except DocumentError:
            return None

    def _writer(self, plan: Plan, entry: ObjectEntry) -> Plan:
        """The plan that wrote an object. If its plan cannot be read, which is a finding, the plan of the manifest."""
        run = run_name(plan.interval.id, revision_in(entry.key))
        if run not in self._writers:
            # Runs come one after the other: only the last interval's plans are needed.
            self._writers = {r: p for r, p in self._writers.items() if p and p.interval == plan.interval}
            try:
                self._writers[run] = plan if run == plan.run else self._ledger.plan(run)
            except DocumentError:
                self._writers[run] = None
        return self._writers[run] or plan

    def _manifest(self, run: str) -> Manifest | None:
        try:
            return self._ledger.manifest(run)
        except DocumentError:
            return None

    def _look(self, entry: ObjectEntry, plan: Plan, object_: ObjectEntry | None) -> list[str]:
        """Return the faults of an object.

        :param object_: for a sidecar, its object, if that is there.
        """
        beside = SidecarOwner(object_, self._fetch(object_)) if object_ else None
        fetch = self._fetch(entry)
        # Read twice before reporting: the first read may have been damaged in transit.
        secret = self._secret(plan)
        return read_through(entry, plan, fetch, beside, secret) and read_through(entry, plan, fetch, beside, secret)

    def _secret(self, plan: Plan) -> bytes | None:
        """The data key of a plan; None if it has none, or it cannot be opened."""
        if plan.data_key is None:
            return None
        if plan.data_key not in self._secrets:
            self._secrets[plan.data_key] = self._open(plan.data_key)
        return self._secrets[plan.data_key]

    def _open(self, key_id: str) -> bytes | None:
        master = ""
        try:
            document = self._ledger.data_key(key_id).document
            master = document.wrapped.master if document else ""
            return self._ledger.open_key(key_id).secret
        except (DocumentError, IntegrityError):
            # A finding of its own.
            return None
        except PermanentError as why:
            self._closed[key_id] = (master, str(why))
            return None

    def _fetch(self, entry: ObjectEntry) -> Fetch:
        def fetch(start: int, length: int) -> bytes:
            data = self._store.read(entry.key, start, length)
            if data is None:
                raise FileNotFoundError("the object is gone")
            return data

        return fetch

    def _advance(self, entry: ObjectEntry | AdoptedObject) -> None:
        self.count += 1
        self._bytes += entry.bytes
        if time.monotonic() - self._told > SECONDS:
            self._told = time.monotonic()
            of = f"{self.count:,} of {self._expected:,} objects"
            self._tell(f"{self._ledger.archive}: {of} read, {self._bytes / 1e6:,.0f} MB")


def _damaged(archive: str, entry: ObjectEntry, run: str, problems: list[str]) -> Finding:
    return error(
        WRONG,
        entry.key,
        "; ".join(problems),
        f"{entry.rows} rows, offsets {entry.first_offset} to {entry.last_offset}, "
        f"checksum {entry.checksum} (run {run})",
        again(archive),
        run,
    )


def _not_opened(archive: str, count: int, key: str, master: str, why: str) -> Finding:
    """The finding about encrypted objects whose bytes were compared, but whose records nobody could read so."""
    return error(
        "not-opened",
        key,
        f"{count:,} encrypted objects, this one the first, cannot be opened: {why}. Their bytes were compared with "
        "their checksums, their records were not read",
        f"the master key {master}, which opens their data keys",
        advise(
            "Give that master key, then audit again: ",
            audit(archive, deep=True),
            ". Without Airflow, `master_keys` in the environment variable KAFKA_ARCHIVER_ENDPOINTS",
        ),
    )


def _not_read(archive: str, how: tuple[str, str], count: int, key: str, run: str) -> Finding:
    """The finding about objects whose bytes were compared, but whose records were not read."""
    format_name, content = how
    fault = reader_of(format_name).fault
    return warning(
        "content-not-read",
        key,
        f"{count:,} objects of format {format_name} with content {content}, this one the first: their bytes were "
        "compared with their checksums, their records were not read"
        f"{fault and ': '}{foreign(fault, 1024)}",
        f"a format that the audit can read ({' | '.join(names())})",
        advise(
            "Install a distribution that adds a reader of that format to the audit, or check with a program that reads "
            "it that the objects hold the records that the manifests promise. Or set `store.format` to a format that "
            "the audit reads; ",
            plan_anew(archive, run),
            " writes a run again while Kafka has its records",
        ),
    )

"""The ledger's promises on disk during an audit: ten years of hours do not fit into memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kafka_archiver.context.temporary_tables import TemporaryTables
from kafka_archiver.model.adopted import AdoptedObject
from kafka_archiver.model.leftovers import place_of
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.proof import Contribution, HourProof
from kafka_archiver.model.settings import Settings
from kafka_archiver.store import Stat

_TABLES = """
CREATE TABLE promised (key TEXT PRIMARY KEY, size INTEGER, etag TEXT, run TEXT, checksum TEXT) WITHOUT ROWID;
CREATE TABLE replaced (key TEXT PRIMARY KEY, run TEXT) WITHOUT ROWID;
CREATE TABLE listed (key TEXT PRIMARY KEY, size INTEGER, etag TEXT) WITHOUT ROWID;
CREATE TABLE contributions (hour INTEGER, number INTEGER, run TEXT, document TEXT, PRIMARY KEY (hour, number));
CREATE TABLE proofs (hour INTEGER PRIMARY KEY, proof TEXT, ahead TEXT);
"""
# The number for the hour of records without a time.
_NO_HOUR = -1


class Difference(NamedTuple):
    """An object that is not as promised. `run`: the run whose manifest names it, if any; `found_size` None: missing."""

    key: str
    run: str | None
    size: int | None
    etag: str | None
    checksum: str | None
    found_size: int | None
    found_etag: str | None


class PromiseTable(TemporaryTables):
    """One audit's tables, in a temporary file."""

    tables = _TABLES

    # Objects.

    def promise(self, manifest: Manifest) -> list[tuple[str, str]]:
        """Add a manifest that counts. Returns the keys that another manifest has promised already, with its run."""
        twice = []
        for item in manifest.stored:
            row = (item.key, item.bytes, item.etag, manifest.run, item.checksum)
            if not self._db.execute("INSERT OR IGNORE INTO promised VALUES (?, ?, ?, ?, ?)", row).rowcount:
                [run] = self._db.execute("SELECT run FROM promised WHERE key = ?", (item.key,)).fetchone()
                twice.append((item.key, run))
        return twice

    def promise_adopted(self, objects: Iterable[AdoptedObject]) -> None:
        """Add objects that another tool wrote. No run has them."""
        rows = ((item.key, item.bytes, item.etag, None, item.checksum) for item in objects)
        self._db.executemany("INSERT OR IGNORE INTO promised VALUES (?, ?, ?, ?, ?)", rows)

    def is_adopted(self, key: str) -> bool:
        """Return True if the archive has adopted an object."""
        return self._db.execute("SELECT 1 FROM promised WHERE key = ? AND run IS NULL", (key,)).fetchone() is not None

    def replace(self, keys: Iterable[str], run: str) -> None:
        """Add objects that should be gone. With an empty run: objects that may be there or not."""
        self._db.executemany("INSERT OR REPLACE INTO replaced VALUES (?, ?)", ((key, run) for key in keys))

    def add_listed(self, stats: Iterable[Stat]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO listed VALUES (?, ?, ?)", ((s.key, s.size, s.etag) for s in stats))

    def forget(self, prefix: str, layouts: Sequence[Settings]) -> None:
        """Remove listed objects below a prefix, except objects in a place of ours (`place_of`)."""
        self._db.create_function("has_place", 1, lambda key: place_of(key, *layouts) is not None)
        query = "DELETE FROM listed WHERE substr(key, 1, ?) = ? AND NOT has_place(key)"
        self._db.execute(query, (len(prefix), prefix))

    def promised(self) -> tuple[int, int]:
        """The number of promised objects, and of their bytes."""
        count, size = self._db.execute("SELECT count(*), coalesce(sum(size), 0) FROM promised").fetchone()
        return count, size

    def differences(self) -> Iterator[Difference]:
        """The promised objects that are missing or different, by key."""
        yield from map(
            Difference._make,
            self._db.execute(
                "SELECT p.key, p.run, p.size, p.etag, p.checksum, l.size, l.etag "
                "FROM promised p LEFT JOIN listed l USING (key) "
                "WHERE l.key IS NULL OR l.size <> p.size OR l.etag <> p.etag ORDER BY p.key"
            ),
        )

    def strangers(self) -> Iterator[tuple[Difference, str | None]]:
        """The listed objects that are not promised, by key, with the run that should have removed each, if any."""
        rows = self._db.execute(
            "SELECT l.key, l.size, l.etag, r.run FROM listed l LEFT JOIN promised p USING (key) "
            "LEFT JOIN replaced r USING (key) WHERE p.key IS NULL AND (r.run IS NULL OR r.run <> '') ORDER BY l.key"
        )
        for key, size, etag, run in rows:
            yield Difference(key, None, None, None, None, size, etag), run

    # Hours.

    def proof(self, hour: int | None, ahead: bool = False) -> HourProof | None:
        """The proof of an hour so far, without its contributions.

        :param ahead: once the next run is settled; None if that changes nothing.
        """
        column = "ahead" if ahead else "proof"
        row = self._db.execute(f"SELECT {column} FROM proofs WHERE hour = ?", (_number(hour),)).fetchone()
        return HourProof.model_validate_json(row[0]) if row and row[0] else None

    def prove(self, proof: HourProof, ahead: bool = False) -> None:
        column = "ahead" if ahead else "proof"
        self._db.execute(
            f"INSERT INTO proofs (hour, {column}) VALUES (?, ?) "
            f"ON CONFLICT (hour) DO UPDATE SET {column} = excluded.{column}",
            (_number(proof.hour), proof.model_copy(update={"runs": ()}).model_dump_json()),
        )
        for contribution in proof.runs:
            row = (_number(proof.hour), contribution.number, contribution.run, contribution.model_dump_json())
            self._db.execute("INSERT OR REPLACE INTO contributions VALUES (?, ?, ?, ?)", row)

    def hours(self) -> list[int | None]:
        """The hours that have a proof, oldest first."""
        rows = self._db.execute("SELECT hour FROM proofs ORDER BY hour").fetchall()
        return [None if hour == _NO_HOUR else hour for (hour,) in rows]

    def contribution(self, hour: int | None, run: str | None) -> Contribution | None:
        query = "SELECT document FROM contributions WHERE hour = ? AND run = ?"
        row = self._db.execute(query, (_number(hour), run)).fetchone()
        return Contribution.model_validate_json(row[0]) if row else None

    def contributions(self, proof: HourProof) -> tuple[Contribution, ...]:
        """Return the contributions to the hour of a proof of the runs that count, up to its last run, in the order of
        the line.
        """
        query = "SELECT document FROM contributions WHERE hour = ? AND number <= ? ORDER BY number"
        rows = self._db.execute(query, (_number(proof.hour), proof.number))
        contributions = (Contribution.model_validate_json(document) for (document,) in rows)
        return tuple(c for c in contributions if c.run not in proof.replaced)


def _number(hour: int | None) -> int:
    return _NO_HOUR if hour is None else hour

"""Tables in a temporary file: facts that do not fit into memory, for as long as one step looks at them."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import ClassVar, Self

# Nothing is to survive: no journal, no waiting for the disk.
_PRAGMAS = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE;"


class TemporaryTables:
    """A SQLite database of its own, for one thread at a time. A subclass has its `tables`."""

    tables: ClassVar[str]

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        # A script ends the transaction before it.
        self._db.executescript(f"{_PRAGMAS} {self.tables} BEGIN;")

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Self]:
        """Open empty tables, deleted at the end."""
        with TemporaryDirectory(prefix="kafka-archiver-tables-") as directory:
            connection = sqlite3.connect(f"{directory}/tables", isolation_level=None, check_same_thread=False)
            try:
                yield cls(connection)
            finally:
                connection.close()

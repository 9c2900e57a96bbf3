"""The facts about all objects, on disk: a folder may have millions."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from kafka_archiver.context.temporary_tables import TemporaryTables
from kafka_archiver.model.adopted import AdoptedObject, ReadObject

_TABLES = """
CREATE TABLE read (topic TEXT, partition INTEGER, chain TEXT, number INTEGER, key TEXT, document TEXT);
CREATE TABLE placed (topic TEXT, partition INTEGER, first INTEGER, last INTEGER, key TEXT, document TEXT);
"""


class ObjectTable(TemporaryTables):
    """One adoption's tables, in a temporary file."""

    tables = _TABLES

    def add_read(self, items: Iterable[ReadObject]) -> None:
        """Add objects that were read."""
        rows = ((o.topic, o.partition, o.chain, o.number, o.key, o.model_dump_json()) for o in items)
        self._db.executemany("INSERT INTO read VALUES (?, ?, ?, ?, ?, ?)", rows)

    def chains(self) -> Iterator[Iterator[ReadObject]]:
        """Yield the chains, each in the order of its numbers."""
        query = "SELECT topic, partition, chain, document FROM read ORDER BY topic, partition, chain, number, key"
        for _, rows in groupby(self._db.execute(query), key=lambda row: row[:3]):
            yield (ReadObject.model_validate_json(row[3]) for row in rows)

    def add_placed(self, items: Iterable[AdoptedObject]) -> None:
        """Add objects with what is known of their offsets."""
        rows = ((o.topic, o.partition, o.sure.start, o.last_offset, o.key, o.model_dump_json()) for o in items)
        self._db.executemany("INSERT INTO placed VALUES (?, ?, ?, ?, ?, ?)", rows)

    def partitions(self) -> Iterator[tuple[str, int, Iterator[AdoptedObject]]]:
        """Yield topic and partition, and the objects in the order of their first offsets, the longest first."""
        query = "SELECT topic, partition, document FROM placed ORDER BY topic, partition, first, last DESC, key"
        for (topic, partition), rows in groupby(self._db.execute(query), key=lambda row: row[:2]):
            yield topic, partition, (AdoptedObject.model_validate_json(row[2]) for row in rows)

"""Adopt the objects of another tool. Every document is written once, so an attempt that was killed is continued."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import groupby

from kafka_archiver.context.temporary_tables import TemporaryTables
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.model.adopted import (
    UNKNOWN,
    AdoptedObject,
    AdoptedPage,
    AdoptedPartition,
    AdoptedReading,
    Adoption,
    AdoptionBegun,
    LeftOut,
    ReadObject,
    Tool,
)
from kafka_archiver.values.threads import each
from kafka_archiver.work.adopt.account import PartitionAccount
from kafka_archiver.work.adopt.listing import frozen_listing, part_of
from kafka_archiver.work.adopt.names import EXPECTED
from kafka_archiver.work.adopt.offsets import placed
from kafka_archiver.work.adopt.read_object import read_object

_TABLES = """
CREATE TABLE read (topic TEXT, partition INTEGER, chain TEXT, number INTEGER, key TEXT, document TEXT);
CREATE TABLE placed (topic TEXT, partition INTEGER, first INTEGER, last INTEGER, key TEXT, document TEXT);
"""


class ObjectTable(TemporaryTables):
    """One adoption's tables, in a temporary file."""

    tables = _TABLES

    def add_read(self, items: Iterable[ReadObject]) -> None:
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


# Objects read at the same time; each holds one piece in memory.
THREADS = 8
# Keys that are left out and named in the head; all are counted.
EXAMPLES = 1000
Tell = Callable[[str], object]


def adopt(
    ledger: Ledger, folder: str, tool: Tool, topic: str | None, moment: datetime, tell: Tell = lambda _: None
) -> Adoption:
    """List the folder, read its objects, and write what is known of them. Changes none of them.

    :param folder: the prefix below the store's URL.
    :param topic: of a tool whose names do not say it.
    :param moment: now.
    :raises ConfigError: the archive has runs, has adopted other objects, or the folder has none of this tool.
    """
    if adoption := ledger.adoption():
        require_same(ledger, adoption, folder, tool)
        ledger.remove_adopted_work()
        return adoption
    if ledger.planned(1) is not None:
        raise ConfigError(
            f"archive {ledger.archive} has runs of its own: adopt into an archive of another name, in a YAML with the "
            "same `store.url`"
        )
    begun = frozen_listing(ledger, folder, tool, topic, moment)
    left_out: Counter[str] = Counter()
    examples: list[LeftOut] = []

    def leave_out(item: LeftOut) -> None:
        # A reason may name another key.
        left_out[item.reason.partition(": ")[0] if item.reason.startswith("it cannot") else _kind(item.reason)] += 1
        if len(examples) < EXAMPLES:
            examples.append(item)

    with ObjectTable.open() as table:
        for number in range(len(begun.digests)):
            reading = _reading(ledger, begun, number)
            table.add_read(_unclaimed(ledger, reading.objects, leave_out))
            for item in reading.left_out:
                leave_out(item)
            tell(f"{ledger.archive}: {number + 1:,} of {len(begun.digests):,} parts of the listing read")
        for chain in table.chains():
            table.add_placed(placed(chain))
        partitions = tuple(_partitions(ledger, table, leave_out))
    if not partitions:
        raise ConfigError(
            f"{ledger.store.url}/{folder} has no object of {tool}: expected keys like {EXPECTED[tool]}; found "
            f"{', '.join(item.key for item in examples[:3]) or 'no object'}"
        )
    adoption = Adoption(
        archive=ledger.archive,
        tool=tool,
        adopted_from=f"{ledger.store.url}/{folder}",
        folder=folder,
        adopted_at=begun.begun_at,
        unknown=UNKNOWN[tool],
        objects=sum(p.objects for p in partitions),
        rows=sum(p.rows for p in partitions),
        bytes=sum(p.bytes for p in partitions),
        left_out=dict(sorted(left_out.items())),
        examples=tuple(examples),
        partitions=partitions,
    )
    if not ledger.create_adoption(adoption) and ledger.adoption() != adoption:
        raise IntegrityError(f"archive {ledger.archive} has adopted other objects meanwhile: run it again to see them")
    ledger.remove_adopted_work()
    return adoption


def require_same(ledger: Ledger, adoption: Adoption, folder: str, tool: Tool) -> None:
    """Refuse a second folder or tool. Raises ConfigError."""
    if (adoption.tool, adoption.folder) != (tool, folder):
        raise ConfigError(
            f"archive {ledger.archive} has adopted {adoption.adopted_from} of {adoption.tool}: expected the same "
            "folder and tool, or another --archive, whose YAML has the same `store.url`"
        )


def _kind(reason: str) -> str:
    """Return a reason without the key that it names."""
    for kind in ("the same bytes and offsets as", "all of its offsets are in"):
        if reason.startswith(kind):
            return f"{kind} another object"
    return reason


def _reading(ledger: Ledger, begun: AdoptionBegun, number: int) -> AdoptedReading:
    """Return what reading a part shows: that of an attempt before, or read now."""
    if reading := ledger.adopted_reading(number):
        return reading
    listing = part_of(ledger, begun, number)
    outcomes = each(
        lambda item: read_object(ledger.store, item, begun.tool, begun.topic), listing.objects, threads=THREADS
    )
    reading = AdoptedReading(
        archive=ledger.archive,
        number=number,
        objects=tuple(o for o in outcomes if isinstance(o, ReadObject)),
        left_out=tuple(o for o in outcomes if isinstance(o, LeftOut)),
    )
    ledger.create_reading(reading)
    return ledger.adopted_reading(number) or reading


def _unclaimed(
    ledger: Ledger, items: tuple[ReadObject, ...], leave_out: Callable[[LeftOut], None]
) -> Iterator[ReadObject]:
    """Yield the objects whose topics no archive has here: another archive's objects may look like the tool's."""
    owners = {topic: ledger.claimed(topic) for topic in sorted({item.topic for item in items})}
    for item in items:
        owner = owners[item.topic]
        if owner in (None, ledger.archive):
            yield item
        else:
            leave_out(LeftOut(key=item.key, reason=f"archive {owner} has its topic here, and wrote it or may have"))


def _partitions(ledger: Ledger, table: ObjectTable, leave_out: Callable[[LeftOut], None]) -> Iterator[AdoptedPartition]:
    def write(page: AdoptedPage) -> None:
        if not ledger.create_page(page):
            raise IntegrityError(
                f"page {page.number} of {page.topic}[{page.partition}] is in the ledger of {ledger.archive} with other "
                "content. Nothing is adopted yet: remove "
                f"{ledger.store.url}/_ledger/{ledger.archive}/adopted/ and adopt again"
            )

    for topic, partition, items in table.partitions():
        account = PartitionAccount(ledger.archive, topic, partition, write, leave_out).take(items)
        if account:
            yield account

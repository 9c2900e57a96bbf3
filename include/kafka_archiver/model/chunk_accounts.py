"""The account of a chunk: for every offset exactly one fate. Pure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from kafka_archiver.model.plan import Chunk
from kafka_archiver.values.documents import Count, Value, unwritten
from kafka_archiver.values.gaps import Gaps, count, merged, outside, pack, unpack
from kafka_archiver.values.ranges import Range

if TYPE_CHECKING:
    from kafka_archiver.values.gaps import Rows

FATES = ("archived", "filtered", "dead_lettered", "absent", "lost")
# A chunk of a plan: topic, partition, and its first offset.
ChunkPlace = tuple[str, int, int]


class Witness(Value):
    """The last record that was read of a chunk, by which its log is recognised: offset, time and value.

    `value`: the CRC-32 of its bytes in hex, null for a null value.
    """

    offset: int
    timestamp: int
    value: str | None


class ChunkAccount(Chunk):
    """A chunk with the account of its offsets; the five counts add up to its length.

    `absent_ranges` lists the offsets at which Kafka has no record (compacted away, aborted, or a control record),
    `lost_ranges` those whose records, if there were any, Kafka had dropped before they could be read. Offsets of lost
    objects count as lost and are in no range. `rows`: the number of rows of the archived records, if there are more
    rows than records; else null. `disorder`: the most milliseconds by which a record is older than an earlier record of
    the chunk. `unnamed`: the number of records from which properties are left out that their JSON Schema does not name.
    `set_aside`: offset and reason of each record that was rejected unread, because no process survives it.
    """

    archived: Count = 0
    filtered: Count = 0
    dead_lettered: Count = 0
    absent: Count = 0
    lost: Count = 0
    absent_ranges: Gaps = ()
    lost_ranges: Gaps = ()
    last: Witness | None = None
    disorder: Count = 0
    rows: Count | None = unwritten(None)
    unnamed: Count = unwritten(0)
    set_aside: tuple[tuple[int, str], ...] = unwritten(())

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        counted = sum(getattr(self, fate) for fate in FATES)
        if counted != self.end - self.start:
            raise ValueError(f"{self} has {self.end - self.start} offsets but {counted} are accounted for")
        if self.rows is not None and self.rows <= self.archived:
            raise ValueError(f"{self}: expected more than {self.archived} rows or none given, found {self.rows}")
        # Skip the ranges where possible: most chunks have none, and a run may have half a million chunks.
        if (self.absent or self.absent_ranges) and self._listed("absent", self.absent_ranges) != self.absent:
            raise ValueError(f"{self}: the absent ranges are not the {self.absent} absent offsets")
        if self.lost_ranges and self._listed("lost", self.lost_ranges) > self.lost:
            raise ValueError(f"{self}: the lost ranges are more than the {self.lost} lost offsets")
        return self

    def _listed(self, fate: str, gaps: Gaps) -> int:
        """The number of offsets in the ranges, once they are checked."""
        rows = unpack(self.start, self.end, gaps)
        inside = not len(rows) or (rows[0, 0] >= self.start and rows[-1, 1] <= self.end)
        # An account must have only one form: otherwise a replay would seem to give another manifest.
        if not inside or (rows[1:, 0] <= rows[:-1, 1]).any() or pack(self.start, self.end, rows) != gaps:
            raise ValueError(f"{self}: the {fate} ranges are outside, not sorted, or could be fewer")
        return count(rows)

    @classmethod
    def nothing_there(cls, chunk: Chunk) -> Self:
        """The account of a chunk in which Kafka has no record at all."""
        return cls(**chunk.model_dump(), absent=chunk.range.size, absent_ranges=((chunk.start, chunk.end),))

    @classmethod
    def all_lost(cls, chunk: Chunk) -> Self:
        """The account of offsets that Kafka dropped before they were planned."""
        return cls(**chunk.model_dump(), lost=chunk.range.size, lost_ranges=((chunk.start, chunk.end),))

    def losing(self, present: Range) -> Self:
        """The same account if the log has only `present` now: absent offsets outside of it count as lost."""
        return self._losing(*outside(unpack(self.start, self.end, self.absent_ranges), present))

    def giving_up(self, unread: Range) -> Self:
        """The same account if nobody has read these offsets: as absent as they seem, they count as lost."""
        gone, kept = outside(unpack(self.start, self.end, self.absent_ranges), unread)
        return self._losing(kept, gone)

    def lost_in(self, offsets: Range) -> tuple[Range, ...]:
        """The lost ones of some offsets, in ranges."""
        inside, _ = outside(unpack(self.start, self.end, self.lost_ranges), offsets)
        return tuple(Range(*row) for row in inside.tolist())

    def _losing(self, kept: "Rows", gone: "Rows") -> Self:
        """The same account with some of its absent offsets as lost ones."""
        if not len(gone):
            return self
        lost = merged(gone, unpack(self.start, self.end, self.lost_ranges))
        return self.model_copy(
            update={
                "absent": self.absent - count(gone),
                "lost": self.lost + count(gone),
                "absent_ranges": pack(self.start, self.end, kept),
                "lost_ranges": pack(self.start, self.end, lost),
            }
        )

    @property
    def stored(self) -> Mapping[str, int]:
        """The number of rows in the objects of each fate."""
        rows = self.archived if self.rows is None else self.rows
        return {"archived": rows, "dead_lettered": self.dead_lettered}

    @property
    def place(self) -> ChunkPlace:
        return self.topic, self.partition, self.start

    @property
    def chunk(self) -> Chunk:
        """The chunk without its account, as plans have it."""
        return Chunk(**{field: getattr(self, field) for field in Chunk.model_fields})


def totals(accounts: Iterable[ChunkAccount]) -> dict[str, int]:
    """The sum for each fate."""
    sums = dict.fromkeys(FATES, 0)
    for account in accounts:
        for fate in FATES:
            sums[fate] += getattr(account, fate)
    return sums

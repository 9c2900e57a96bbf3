"""Objects that another tool wrote and the archive has adopted. Pure.

They are in no run and in no hour: nobody has proved what they lack. `adoption.json` is the head, written last; its
partitions name their pages, and a page has objects in the order of their first offsets.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field

from kafka_archiver.values.documents import ArchiveDocument, Count, PartitionValue, Size, UtcTime, Value
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.ranges import Range

Tool = Literal["confluent", "deviantart", "kafkatos3", "lenses", "zooz"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
# What is known of the offsets of an object's rows. each: every row's. within: all rows are between the first and the
# last offset, nobody knows where. first, last: only that of the first row, or of the last one.
Known = Literal["each", "within", "first", "last"]
# Objects of a page.
PAGE = 1000


class AdoptedObject(Value):
    """One object.

    `format`: a format of `records.reading.foreign`. `has_offsets`: the records themselves have their offsets. `counts`:
    false if a row may be only a part of a value: one with a line break.
    Of a known `first`, rows may lie anywhere behind; of a known `last`, anywhere before.
    Timestamps are the smallest and the largest of the records by the object's name or its content; null: unknown.
    """

    key: str
    topic: str
    partition: Count
    format: str
    codec: str
    rows: Annotated[int, Field(gt=0)]
    bytes: Size
    checksum: str
    etag: str
    first_offset: Count
    last_offset: Count
    offsets: Known
    has_offsets: bool = False
    counts: bool = True
    min_timestamp: int | None = None
    max_timestamp: int | None = None

    @property
    def names_a_row(self) -> bool:
        """Return True if the offset in its name is that of its first or last row alone."""
        return self.offsets in ("first", "last") and self.counts

    @property
    def span(self) -> Range:
        """The offsets between which its rows may be, as far as that is known."""
        end = 2**63 - 1 if self.offsets == "first" else self.last_offset + 1
        return Range(0 if self.offsets == "last" else self.first_offset, end)

    @property
    def sure(self) -> Range:
        """Offsets that its rows have, or between which each of them is."""
        if self.offsets == "first":
            return Range(self.first_offset, self.first_offset + 1)
        if self.offsets == "last":
            return Range(self.last_offset, self.last_offset + 1)
        return Range(self.first_offset, self.last_offset + 1)


class PageRef(Value):
    """A page: its number, and the first and the last offset that its objects are known to have. `loose`: objects of
    which some row's offset is unknown.
    """

    number: Count
    first: Count
    last: Count
    objects: Annotated[int, Field(gt=0)]
    loose: Count
    digest: str


class AdoptedPartition(PartitionValue):
    """The account of a partition.

    `placed`: rows with a known offset; `loose`: those without. `first_offset`, `last_offset`: of what is known.
    `unproven`: offsets between these two of which no row is known to be; nobody knows what Kafka had there.
    """

    objects: Count
    rows: Count
    bytes: Count
    placed: Count
    loose: Count
    first_offset: Count
    last_offset: Count
    unproven: Count
    pages: tuple[PageRef, ...]


class LeftOut(Value):
    """A key that was not adopted, and why."""

    key: str
    reason: str


class Adoption(ArchiveDocument):
    """The head: what was adopted, from whom, and how much of it.

    `adopted_from`: the folder's URL at that time; `folder`: its prefix below `store.url`.
    `left_out`: how many keys below the folder were not adopted, by reason; `examples`: some of them.
    """

    document: Literal["kafka-archiver/adoption"] = "kafka-archiver/adoption"
    tool: Tool
    adopted_from: str
    folder: str
    adopted_at: UtcTime
    verdict: Literal["unproven"] = "unproven"
    unknown: tuple[str, ...]
    objects: Count
    rows: Count
    bytes: Count
    left_out: dict[str, int]
    examples: tuple[LeftOut, ...]
    partitions: tuple[AdoptedPartition, ...]

    def partition(self, topic: str, partition: int) -> AdoptedPartition | None:
        return next((p for p in self.partitions if (p.topic, p.partition) == (topic, partition)), None)

    @property
    def loose(self) -> int:
        """The number of rows whose offsets are unknown."""
        return sum(p.loose for p in self.partitions)

    @property
    def unproven(self) -> int:
        """The number of offsets of which nobody knows whether Kafka had a record there."""
        return sum(p.unproven for p in self.partitions)


class AdoptedPage(ArchiveDocument):
    """Some objects of a partition. `unproven`: the offsets before, between and in them of which no row is known to be,
    as far as objects' bounds tell: not those within an object.
    """

    document: Literal["kafka-archiver/adopted-page"] = "kafka-archiver/adopted-page"
    topic: str
    partition: Count
    number: Count
    unproven: tuple[OffsetRange, ...] = ()
    objects: tuple[AdoptedObject, ...]


class ListedObject(Value):
    """An object as the folder was listed."""

    key: str
    bytes: Count
    etag: str


class AdoptedListing(ArchiveDocument):
    """A part of the listing of the folder, frozen while the objects are read."""

    document: Literal["kafka-archiver/adopted-listing"] = "kafka-archiver/adopted-listing"
    number: Count
    objects: tuple[ListedObject, ...]


class AdoptionBegun(ArchiveDocument):
    """The listing is complete: which folder, whose, when, and how many parts it has."""

    document: Literal["kafka-archiver/adoption-begun"] = "kafka-archiver/adoption-begun"
    tool: Tool
    folder: str
    topic: str | None
    begun_at: UtcTime
    digests: tuple[str, ...]


class ReadObject(Value):
    """An object after it was read once.

    `number`: the offset in its name; `of`: of which row that is. `chain`: objects of a partition with the same chain
    follow each other. `counts`: lines or rows are records, without doubt. `low`, `high`: by the records themselves.
    """

    key: str
    topic: str
    partition: Count
    number: Count | None
    of: Literal["first", "last"]
    chain: str
    format: str
    codec: str
    bytes: Count
    etag: str
    checksum: str
    rows: Count
    counts: bool
    low: int | None = None
    high: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None


class AdoptedReading(ArchiveDocument):
    """The facts that reading the objects of one part of the listing has shown."""

    document: Literal["kafka-archiver/adopted-reading"] = "kafka-archiver/adopted-reading"
    number: Count
    objects: tuple[ReadObject, ...]
    left_out: tuple[LeftOut, ...]


# What no object of a tool tells.
UNKNOWN: Mapping[Tool, tuple[str, ...]] = {
    "confluent": (
        "keys, headers and timestamps of records (a file has values alone)",
        "offsets of rows of the last file of a folder, and of files between whose names more offsets than rows lie",
    ),
    "deviantart": (
        "keys, headers and timestamps of records",
        "Kafka's offsets behind a gap of the topic: the tool numbers a partition's records one after the other, so its "
        "numbers are Kafka's only if compaction and transactions left no gap",
    ),
    "kafkatos3": ("headers and timestamps of records", "whether an empty key or value was null"),
    "lenses": (
        "keys, headers and times of single records, unless files have its envelope",
        "offsets of rows of the first file of a folder, and of files between whose names more offsets than rows lie, "
        "unless files have its envelope",
    ),
    "zooz": (
        "keys, headers and timestamps of records, and the topic",
        "offsets of all records but the first of a file, and which values with a line break were one",
    ),
}

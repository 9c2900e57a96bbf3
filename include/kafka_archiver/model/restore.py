"""The documents of a restore: what is written back to Kafka, where, and how it ended. Pure.

`_ledger/<archive>/restores/<restore>/plan.json` is frozen, create-only. The offsets that it takes are in pages beside
it, `pages/<digest>.json`, so that ten years of runs are neither one document nor in memory at once. `report.json` is
what the last verification saw, `map.json` where each record went (`model/offset_map`).
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from kafka_archiver.model.restored_schemas import ReframedColumn
from kafka_archiver.values.documents import ArchiveDocument, Count, PartitionValue, UtcTime, Value, unwritten
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.ranges import TopicPartition

# How the target partition of a record is chosen. same: the source's; murmur2: of its key, as Java's producer does;
# crc32: of its key, as librdkafka's `consistent` does.
Partitioner = Literal["same", "murmur2", "crc32"]
# dead letters: records that the archive's format could not hold; they are whole, in `_dead_letter/`.
DeadLetterChoice = Literal["with", "without", "only"]
# What a restore may change or leave out, if its caller says so; else it is refused, with the count.
# values_only: records of which the archive has only values; rows: records that became several rows, or columns that are
# not the record's bytes; lost: offsets whose records nobody has; timestamps: those that the client cannot write (0, -1,
# and others below 0); headers: names that the client cannot write (NUL, bytes that are not UTF-8).
Inexact = Literal["values_only", "rows", "lost", "timestamps", "headers"]


class SourcePartition(PartitionValue):
    """A partition of one generation of an archived topic."""

    generation: Count = 0

    def __str__(self) -> str:
        return f"{self.name}" + f" generation {self.generation}" * bool(self.generation)


class SelectedHeader(Value):
    """A header that a record must have. `value`: its bytes in base64; null: any."""

    name: str
    value: str | None = None


class RestoreSelection(Value):
    """The records that a restore takes of the source partitions; all conditions hold. Null or empty: no condition.

    `generation`: of the topics' logs; null: each has but one. `hours`: whole hours since 1970, `[start, end)`, in which
    records are filed. `offsets`: of every partition.
    `as_of`: records whose timestamp is before it, in milliseconds. `keys`: in base64; one of them is the record's.
    """

    topics: Annotated[tuple[str, ...], Field(min_length=1)]
    partitions: tuple[int, ...] = ()
    generation: Count | None = None
    hours: tuple[int, int] | None = None
    offsets: OffsetRange | None = None
    as_of: int | None = None
    keys: tuple[str, ...] = ()
    headers: tuple[SelectedHeader, ...] = ()
    dead_letters: DeadLetterChoice = "with"

    def takes(self, name: TopicPartition) -> bool:
        """Return True if it takes records of a partition."""
        return name.topic in self.topics and (not self.partitions or name.partition in self.partitions)

    @property
    def by_content(self) -> bool:
        """Return True if only a record itself tells if it is taken: its count is not in the manifests."""
        return bool(self.keys or self.headers or self.as_of is not None)


class RestoreLimits(Value):
    """Limits of the whole restore, null for none, and of a transaction."""

    bytes_per_second: Annotated[int, Field(gt=0)] | None = None
    records_per_second: Annotated[int, Field(gt=0)] | None = None
    transaction_bytes: Annotated[int, Field(gt=0)] = 16 << 20
    transaction_seconds: Annotated[int, Field(gt=0)] = 10


class RestoreOptions(Value):
    """The deviations that the caller accepts beside an exact copy into an empty topic.

    `allow`: what need not be exact. `append`: the target has records of others before its start offsets.
    """

    allow: tuple[Inexact, ...] = ()
    append: bool = False

    def allows(self, change: Inexact) -> bool:
        """Return True if the caller accepts a kind of change."""
        return change in self.allow


class TargetTopic(Value):
    """A topic that is written. `starts`: the end of each of its partitions at planning; nothing before is touched.

    `append_time`: its broker sets the timestamps (LogAppendTime), so they are not those of the archive.
    """

    source: str
    topic: str
    topic_id: str
    partitioner: Partitioner = "same"
    append_time: bool = False
    starts: Annotated[tuple[Count, ...], Field(min_length=1)]

    @property
    def partitions(self) -> int:
        """The number of its partitions."""
        return len(self.starts)


class PageEntry(Value):
    """A page of the plan. `digest`: of its bytes, which is also its name. `first`, `end`: bounds of its offsets."""

    digest: str
    first: Count
    end: Count


class RestoreCounts(Value):
    """Counts from manifests. `records`: exactly, or the most if not `exact`.

    `bytes`: of the objects that are read, as stored. `dead_letters`: among `records`. `filtered`, `absent`, `lost`:
    offsets without a record in the archive. `values_only`, `rows`: records of which it has only values or columns, or
    several rows. `oldest`, `newest`: bounds of the timestamps in milliseconds, of the objects that are read.
    """

    records: Count = 0
    exact: bool = True
    bytes: Count = 0
    dead_letters: Count = 0
    filtered: Count = 0
    absent: Count = 0
    lost: Count = 0
    values_only: Count = 0
    rows: Count = 0
    oldest: int | None = None
    newest: int | None = None

    def __add__(self, other: "RestoreCounts") -> "RestoreCounts":
        def extreme(choose: Callable[[Iterable[int]], int], *times: int | None) -> int | None:
            known = [time for time in times if time is not None]
            return choose(known) if known else None

        sums = ("records", "bytes", "dead_letters", "filtered", "absent", "lost", "values_only", "rows")
        return RestoreCounts(
            **{name: getattr(self, name) + getattr(other, name) for name in sums},
            exact=self.exact and other.exact,
            oldest=extreme(min, self.oldest, other.oldest),
            newest=extreme(max, self.newest, other.newest),
        )


class RestoreSource(RestoreCounts, SourcePartition):
    """The selection from one source partition: pages with its offsets, ascending, and counts from the manifests.

    `offsets`: how many offsets the pages have.
    """

    pages: tuple[PageEntry, ...] = ()
    offsets: Count = 0

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for before, page in pairwise(self.pages):
            if page.first < before.end:
                raise ValueError(f"{self}: the page from {page.first} on is out of order")
        return self


# Offsets `[start, end)`, and the index of their run in `RestorePage.runs`.
RunSlice = tuple[int, int, int]


class RestorePage(ArchiveDocument):
    """Offsets of one source partition, ascending, each with the run that counts for them.

    `runs`: name, with the revision, and digest of the manifest.
    """

    document: Literal["kafka-archiver/restore-page"] = "kafka-archiver/restore-page"
    source: SourcePartition
    runs: tuple[tuple[str, str], ...]
    slices: Annotated[tuple[RunSlice, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        end = 0
        for start, stop, run in self.slices:
            if not end <= start < stop or not 0 <= run < len(self.runs):
                raise ValueError(f"{self.source}: slice [{start}, {stop}) of run {run} is out of order or of no run")
            end = stop
        return self

    @property
    def entry(self) -> PageEntry:
        return PageEntry(digest=self.digest, first=self.slices[0][0], end=self.slices[-1][1])


def _sorted_sources(sources: tuple[RestoreSource, ...]) -> tuple[RestoreSource, ...]:
    places = [source.name for source in sources]
    if places != sorted(set(places)):
        raise ValueError("the source partitions are not sorted, or one is listed twice")
    return sources


def _distinct_topics(topics: tuple[TargetTopic, ...]) -> tuple[TargetTopic, ...]:
    for names in ([topic.source for topic in topics], [topic.topic for topic in topics]):
        if len(set(names)) < len(names):
            raise ValueError(f"a topic is listed twice: {', '.join(names)}")
    return topics


class RestorePlan(ArchiveDocument):
    """The frozen plan of a restore. `sources`: sorted, one generation of each partition.

    `cluster_id`: of the target. `group`: the group of the target whose offsets are the restore's progress.
    `through`: the number of the archive's last plan that counted. `schema_ids`: keys and values whose records get other
    schema ids: those of the target's registry. No other document has its digest before its first record is written.
    """

    DIGESTS_CONTENT: ClassVar[bool] = True
    document: Literal["kafka-archiver/restore-plan"] = "kafka-archiver/restore-plan"
    restore: str
    planned_at: UtcTime
    through: Count
    cluster_id: str
    group: str
    selection: RestoreSelection
    options: RestoreOptions = RestoreOptions()
    limits: RestoreLimits = RestoreLimits()
    topics: Annotated[tuple[TargetTopic, ...], Field(min_length=1), AfterValidator(_distinct_topics)]
    schema_ids: tuple[ReframedColumn, ...] = unwritten(())
    sources: Annotated[tuple[RestoreSource, ...], Field(min_length=1), AfterValidator(_sorted_sources)]

    @property
    def records(self) -> int:
        """The number of records that it takes, or the most if not `exact`."""
        return sum(source.records for source in self.sources)

    @property
    def exact(self) -> bool:
        """Return True if the manifests alone tell how many records it takes."""
        return all(source.exact for source in self.sources)

    def target(self, source_topic: str) -> TargetTopic:
        """Return the topic that a source topic is written to."""
        return next(topic for topic in self.topics if topic.source == source_topic)

    def targets(self) -> tuple[TopicPartition, ...]:
        """Return every target partition that may get records, in order."""
        return tuple(
            TopicPartition(topic.topic, partition)
            for topic in self.topics
            for partition in range(topic.partitions)
            if self.sources_of(TopicPartition(topic.topic, partition))
        )

    def sources_of(self, target: TopicPartition) -> tuple[RestoreSource, ...]:
        """Return the source partitions whose records may go to a target partition, in the order of writing."""
        [topic] = (topic for topic in self.topics if topic.topic == target.topic)
        same = topic.partitioner == "same"
        return tuple(
            source
            for source in self.sources
            if source.topic == topic.source and source.pages and (not same or source.partition == target.partition)
        )

    def start(self, target: TopicPartition) -> int:
        """Return the offset from which a target partition is written."""
        [topic] = (topic for topic in self.topics if topic.topic == target.topic)
        return topic.starts[target.partition]


class PartitionReport(PartitionValue):
    """The verification of one target partition.

    `offsets`: from the plan's start to the end of the log. `selected`: records that belong here by the archive's
    manifests (by its objects, if these alone tell); each is `written`, or `excluded` by the option that allowed it.
    `records` + `markers` + `aborted` are all of `offsets`: read committed, read by nobody, and read uncommitted alone.
    `digest`: of the records in the target; `expected_digest`: of those in the archive. `difference`: what is wrong,
    with the offset; empty if nothing is.
    """

    offsets: tuple[Count, Count]
    selected: Count
    written: Count
    excluded: dict[str, Count] = Field(default_factory=dict)
    records: Count
    markers: Count
    aborted: Count
    digest: str
    expected_digest: str
    difference: str = ""

    @property
    def verified(self) -> bool:
        """Return True if the target has exactly what the archive has."""
        start, end = self.offsets
        return (
            not self.difference
            and self.digest == self.expected_digest
            and self.selected == self.written + sum(self.excluded.values())
            and self.records == self.written
            and end - start == self.records + self.markers + self.aborted
        )


class RestoreReport(ArchiveDocument):
    """The last verification. `verified`: every target partition has exactly what the archive has."""

    document: Literal["kafka-archiver/restore-report"] = "kafka-archiver/restore-report"
    restore: str
    plan_digest: str
    at: UtcTime
    verified: bool
    partitions: tuple[PartitionReport, ...]

    @model_validator(mode="after")
    def _true(self) -> Self:
        if self.verified != all(partition.verified for partition in self.partitions):
            raise ValueError(f"`verified` is {self.verified}, and the partitions say otherwise")
        return self

    @property
    def differences(self) -> tuple[str, ...]:
        """The faults, a sentence for each partition."""
        return tuple(p.difference for p in self.partitions if p.difference)

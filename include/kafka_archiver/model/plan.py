"""The plan: which offsets one run archives, with its settings (`model/settings`). Pure."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from kafka_archiver.model.object_keys import ObjectName, run_name, split_object_key
from kafka_archiver.model.settings import Choices, Settings
from kafka_archiver.values.documents import ArchiveDocument, PartitionValue, UtcTime, Value, unwritten
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.intervals import Interval
from kafka_archiver.values.ranges import Range, TopicPartition, overlaps

Offset = Annotated[int, Field(ge=0)]


class Writer(Value):
    """A schema that records may be written with, and the schema that the run writes these records with.

    `id`, `subject` and `version` are the registry's; null for a schema that is not from a registry. `guid`: the
    registry's, only if records have it in a header. The schemas are given by their fingerprints; the ledger has their
    texts.
    """

    id: int | None = None
    subject: str | None = None
    version: int | None = None
    guid: str | None = unwritten(None)
    fingerprint: str
    written_as: str


class TopicSchemas(Value):
    """The schemas of the keys, the values or a header (`headers.<name>`) of one topic.

    `framed`: the bytes begin with the schema's id, or it is in a header. `message`: of a Protobuf schema; the first one
    if empty.
    `main`: only if records are filed by schema, the schema of the objects whose names have no schema's id.
    """

    topic: str
    column: Annotated[str, Field(pattern=r"^(key|value|headers\.(?s:.*))$")]
    framed: bool
    writers: Annotated[tuple[Writer, ...], Field(min_length=1)]
    main: str | None = unwritten(None)
    message: str = unwritten("")

    @property
    def written(self) -> tuple[str, ...]:
        """The fingerprints of the schemas that the run writes, each once, in the order of the writers."""
        return tuple(dict.fromkeys(writer.written_as for writer in self.writers))


class Chunk(PartitionValue):
    """A slice of one partition's range: one Spark task, and one object for every hour its records fall in."""

    generation: int
    start: Offset
    end: Offset

    @property
    def range(self) -> Range:
        return Range(self.start, self.end)

    def __str__(self) -> str:
        return f"{self.name} {self.range}"


class PartitionPlan(Value):
    """The ranges that one run takes of one partition, and the partition's state at planning.

    `start` and `end` are the group's position before and after the run; `ranges` are the offsets in between that no
    earlier plan covers; `lost` the offsets that Kafka had dropped before they were planned (policy record_loss).
    `log_start` and `log_end` bound what could be read. `high` is the high watermark; null in a
    rebuild, which proves no hour, and if it is `unsure`: the reason why the broker that gave it may lead no more.
    `leader_epoch` is that of the log's end; null if the brokers give none.
    `cut`: the log lost offsets that an earlier planner saw and that no run has.
    `older`, `older_than`: offsets that no plan has, and a time before which, by Kafka's time index, they all are.
    `appended_by`: everything that Kafka dropped was appended by then: the log's first record has the broker's time.
    `anew`: a generation begins here whose offsets mean other records than those of the generation before.
    `decided`: the policies that changed the plan, each with what was found. `stood`: the group's offset when they
    decided.
    """

    topic: str
    topic_id: str
    partition: Annotated[int, Field(ge=0)]
    generation: Annotated[int, Field(ge=0)] = 0
    start: Offset
    end: Offset
    log_start: Offset
    log_end: Offset
    high: Offset | None = None
    unsure: str | None = unwritten(None)
    leader_epoch: int | None = None
    cut: bool = unwritten(False)
    ranges: tuple[OffsetRange, ...]
    lost: tuple[OffsetRange, ...] = ()
    older: tuple[OffsetRange, ...] = ()
    older_than: UtcTime | None = None
    anew: bool = False
    appended_by: UtcTime | None = unwritten(None)
    decided: tuple[str, ...] = ()
    stood: Offset | None = unwritten(None)

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def chunk(self, offsets: Range) -> Chunk:
        start, end = offsets
        return Chunk(topic=self.topic, partition=self.partition, generation=self.generation, start=start, end=end)

    def again(self) -> Self:
        """The same offsets for a further revision of the run. It proves no hour: the first plan has what was seen."""
        changes = {
            "cut": False,
            "older": (),
            "older_than": None,
            "anew": False,
            "appended_by": None,
            "unsure": None,
            "decided": (),
            "stood": None,
        }
        return self.model_copy(update={"high": None, **changes})

    @property
    def offset_ranges(self) -> tuple[Range, ...]:
        return tuple(Range(*r) for r in self.ranges)

    @property
    def count(self) -> int:
        """The number of offsets that the plan takes of this partition."""
        return sum(r.size for r in self.offset_ranges)


class DeadLetters(Value):
    """One object of dead letters, as a manifest has it."""

    key: str
    rows: Annotated[int, Field(gt=0)]
    bytes: Annotated[int, Field(gt=0)]
    checksum: str


def _resolved(settings: Settings) -> Settings:
    if not settings.codec:
        raise ValueError("expected a codec; formats.resolve adds it")
    return settings


def _disjoint(partitions: tuple[PartitionPlan, ...]) -> tuple[PartitionPlan, ...]:
    names = [p.name for p in partitions]
    if len(set(names)) != len(names):
        raise ValueError("a partition is listed twice")
    for partition in partitions:
        if shared := overlaps(Range(*r) for r in partition.ranges + partition.lost):
            raise ValueError(f"{partition.name} has offsets in two ranges: {', '.join(map(str, shared))}")
    return partitions


class Plan(ArchiveDocument):
    """The frozen plan of one interval.

    The plans of an archive stand in one line: `number` is the plan's place, from 1, without gaps. `planned_at` is the
    earlier of the planner's clock and the store's, before the high watermarks were read; `at_latest` is the later one,
    null if they agree.
    A rebuild is a further revision of a run: the same offsets under new keys, with settings of its own. Once committed
    it `supersedes` the run, whose objects are then removed, or kept (`keep_superseded`). If that run was not final yet,
    the rebuild `takes_over`: no other run has its offsets. A repair is a revision that reads nothing: it keeps the
    objects of the run that it supersedes, except `lost_objects`, which cannot be recovered. A replay of dead letters
    (origin `dead_letters`) keeps them too, except `letters`: it reads these objects instead of Kafka, and archives
    their records with settings of its own.
    `data_key`: the id of the key that encrypts its objects, if its settings say so; no other plan has this key.
    `max_disorder_ms`: what a backfill assumes about the order of times, to prove its hours alone.
    `ordered_within_ms`: what the archive assumes about the order of times: no record is that much older than an earlier
    one of its partition. It shortens the time that a loss leaves unsure. None, as in plans without it: nothing.
    `loss_rules`: which hours a loss that this run finds leaves incomplete. 1, as in plans without it: those up to the
    hours of the ten records behind it. 2: all up to the moment at which it was known. Proofs keep the rules of their
    plan.
    `refuses_fewer`: of a rebuild: it stops before its objects are visible if it would archive fewer records than the
    run that it would replace. Plans without it do not.
    `hour_rules`: 1, as in plans without it: each hour that the run judges gets a proof of its own. 2: if the run judges
    more than 48 hours at once, those without a record are a stretch in the progress. 3: and the progress knows by what
    the offsets that no run has are older, because another `settings.time` needs another proof. 4: and it keeps the
    disorder of a log that is gone: an assumed order that this log contradicts shortens nothing; and what is gone is of
    no hour that began later, whatever its time was.
    `schemas`: those of each topic that is read, if its keys or values are decoded with a schema.
    `topics_snapshot`, `groups_snapshot`: the fingerprints of the snapshots that were taken at planning; null if none
    was taken.
    """

    # That of about 700 partitions, of which each run says nearly the same.
    LARGE: ClassVar[int | None] = 256 << 10
    document: Literal["kafka-archiver/plan"] = "kafka-archiver/plan"
    number: Annotated[int, Field(ge=1)]
    interval: Interval
    revision: Annotated[int, Field(ge=0)] = 0
    supersedes: str | None = None
    keep_superseded: bool = False
    takes_over: bool = False
    lost_objects: tuple[str, ...] = ()
    # Only of a replay of dead letters.
    letters: tuple[DeadLetters, ...] = unwritten(())
    origin: Literal["scheduled", "manual", "backfill", "rebuild", "repair", "dead_letters"]
    max_disorder_ms: Annotated[int, Field(gt=0)] | None = None
    ordered_within_ms: Annotated[int, Field(gt=0)] | None = unwritten(None)
    refuses_fewer: bool = unwritten(False)
    loss_rules: Literal[1, 2] = unwritten(1)
    hour_rules: Literal[1, 2, 3, 4] = unwritten(1)
    planned_at: UtcTime
    at_latest: UtcTime | None = None
    cluster_id: str
    group: str
    settings: Annotated[Settings, AfterValidator(_resolved)]
    data_key: str | None = unwritten(None)
    policies: Choices
    schemas: tuple[TopicSchemas, ...] = unwritten(())
    topics_snapshot: str | None = unwritten(None)
    groups_snapshot: str | None = unwritten(None)
    partitions: Annotated[tuple[PartitionPlan, ...], AfterValidator(_disjoint)]

    @property
    def run(self) -> str:
        """The name of its run in the ledger."""
        return run_name(self.interval.id, self.revision)

    @property
    def count(self) -> int:
        """The number of offsets that it takes."""
        return sum(p.count for p in self.partitions)

    @property
    def keeps(self) -> bool:
        """Return True if its manifest has objects of the run that it supersedes."""
        return self.origin in ("repair", "dead_letters")

    @property
    def moves_group(self) -> bool:
        """Return True if its commit moves the consumer group, as those of scheduled and manual runs do."""
        return self.origin in ("scheduled", "manual")

    @property
    def has_columns(self) -> bool:
        """Return True if keys or values are decoded to columns."""
        return self.settings.has_columns or bool(self.schemas)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprints of all schemas that it needs, sorted."""
        writers = [writer for of_topic in self.schemas for writer in of_topic.writers]
        return tuple(sorted({writer.fingerprint for writer in writers} | {writer.written_as for writer in writers}))

    def chunks(self) -> Iterator[Chunk]:
        """Its chunks, in partition and offset order; together exactly its offsets."""
        for partition in self.partitions:
            for whole in partition.offset_ranges:
                for part in whole.split(self.settings.chunk_records):
                    yield partition.chunk(part)

    def chunk_of(self, name: TopicPartition, offset: int) -> Chunk | None:
        """The chunk with an offset; None when the plan does not have the offset."""
        for partition in self.partitions:
            # Not by its name: of many partitions that costs more than to compare.
            if partition.partition == name.partition and partition.topic == name.topic:
                for whole in partition.offset_ranges:
                    if offset in whole:
                        length = self.settings.chunk_records
                        start = whole.start + (offset - whole.start) // length * length
                        return partition.chunk(Range(start, min(start + length, whole.end)))
        return None

    def letters_of(self, chunk: Chunk) -> tuple[DeadLetters, ...]:
        return tuple(item for item in self.letters if _start(item.key) == (chunk.name, chunk.start))

    def chunks_of_letters(self) -> list[Chunk]:
        """The chunks that have dead letters to read, in partition and offset order."""
        starts = {_start(item.key) for item in self.letters}
        return [chunk for chunk in self.chunks() if (chunk.name, chunk.start) in starts]

    def places(self) -> frozenset[ObjectName]:
        """The places in the names of its objects, including dead-lettered ones."""
        return frozenset(ObjectName(c.topic, c.partition, c.start, c.generation, self.revision) for c in self.chunks())

    def lost_chunks(self) -> Iterator[Chunk]:
        """The ranges that were gone before planning, as chunks: accounted for, but never read."""
        for partition in self.partitions:
            for gone in partition.lost:
                yield partition.chunk(Range(*gone))


def _start(key: str) -> tuple[TopicPartition, int] | None:
    """The partition and the first offset of the chunk in an object's name."""
    place = split_object_key(key)
    return (TopicPartition(place.topic, place.partition), place.start) if place else None

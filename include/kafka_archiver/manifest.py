"""The manifest: what a run wrote, and the account of every offset of its plan. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from kafka_archiver.documents import Document, UtcTime, Value
from kafka_archiver.keys import is_dead_letter, parse_hour_path
from kafka_archiver.plan import Choices, Chunk, OffsetRange, Plan
from kafka_archiver.ranges import Range, merge

Count = Annotated[int, Field(ge=0)]
FATES = ("archived", "filtered", "dead_lettered", "absent", "lost")


class ObjectEntry(Value):
    """One object of a run.

    `checksum` is the MD5 of the MD5s of its parts (all but the last of the plan's `part_bytes`), a dash and the
    number of parts: what S3 gives as ETag of a multipart upload, computed here. `etag` is what the store said.
    Timestamps are the smallest and largest of its records, in milliseconds since 1970.
    """

    key: str
    topic: str
    partition: int
    generation: int
    chunk_start: int
    path: str
    rows: Annotated[int, Field(gt=0)]
    bytes: Annotated[int, Field(gt=0)]
    checksum: str
    etag: str
    first_offset: int
    last_offset: int
    min_timestamp: int
    max_timestamp: int

    @property
    def hour(self) -> int | None:
        """The hour it is filed in."""
        return parse_hour_path(self.path)


class ChunkAccount(Value):
    """What became of every offset of one chunk; the five counts add up to its length.

    `absent_ranges` lists the offsets at which Kafka has no record (compacted away, aborted, or a control record),
    `lost_ranges` those whose records, if there were any, Kafka had dropped before they could be read.
    """

    topic: str
    partition: int
    generation: int
    start: int
    end: int
    archived: Count = 0
    filtered: Count = 0
    dead_lettered: Count = 0
    absent: Count = 0
    lost: Count = 0
    absent_ranges: tuple[OffsetRange, ...] = ()
    lost_ranges: tuple[OffsetRange, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        counted = sum(getattr(self, fate) for fate in FATES)
        if counted != self.end - self.start:
            raise ValueError(f"{self.chunk} has {self.end - self.start} offsets but {counted} are accounted for")
        for fate, count, ranges in (("absent", self.absent, self.absent_ranges), ("lost", self.lost, self.lost_ranges)):
            # Most chunks have neither, and a run may have half a million.
            if count or ranges:
                self._lists(fate, count, ranges)
        return self

    def _lists(self, fate: str, count: int, ranges: tuple[OffsetRange, ...]) -> None:
        listed = tuple(Range(*r) for r in ranges)
        if sum(r.size for r in listed) != count or any(r.start < self.start or r.end > self.end for r in listed):
            raise ValueError(f"{self.chunk}: the {fate} ranges are not the {count} {fate} offsets")
        if listed != merge(listed):
            # The same account has one form, else a replay would seem to give another manifest.
            raise ValueError(f"{self.chunk}: the {fate} ranges are not sorted, or could be fewer")

    @classmethod
    def nothing_there(cls, chunk: Chunk) -> Self:
        """The account of a chunk in which Kafka has no record at all."""
        return cls(**chunk.model_dump(), absent=chunk.range.size, absent_ranges=((chunk.start, chunk.end),))

    @classmethod
    def all_lost(cls, chunk: Chunk) -> Self:
        """The account of offsets that Kafka dropped before they were planned."""
        return cls(**chunk.model_dump(), lost=chunk.range.size, lost_ranges=((chunk.start, chunk.end),))

    @property
    def chunk(self) -> Chunk:
        """The chunk it accounts for."""
        return Chunk(
            topic=self.topic,
            partition=self.partition,
            generation=self.generation,
            start=self.start,
            end=self.end,
        )


def totals(accounts: Iterable[ChunkAccount]) -> dict[str, int]:
    """The sum of each fate."""
    sums = dict.fromkeys(FATES, 0)
    for account in accounts:
        for fate in FATES:
            sums[fate] += getattr(account, fate)
    return sums


def _complete(account: dict[str, int]) -> dict[str, int]:
    """In one order, so that equal manifests have equal bytes."""
    if set(account) != set(FATES):
        raise ValueError(f"expected the counts {', '.join(FATES)}, got {', '.join(account) or 'none'}")
    return {fate: account[fate] for fate in FATES}


class Manifest(Document):
    """What one run wrote. The same plan and records give the same manifest, byte for byte.

    `dead_letters` are the objects of records that the archive's format cannot hold, `policies` those that decided
    while the run was read (they may have been changed since it was planned).
    """

    document: Literal["kafka-archiver/manifest"] = "kafka-archiver/manifest"
    version: Literal[1] = 1
    archive: str
    run: str
    revision: int = 0
    plan_digest: str
    policies: Choices = Field(default_factory=dict)
    account: Annotated[dict[str, Count], AfterValidator(_complete)]
    objects: tuple[ObjectEntry, ...]
    dead_letters: tuple[ObjectEntry, ...] = ()
    chunks: tuple[ChunkAccount, ...]

    @classmethod
    def of(
        cls,
        plan: Plan,
        objects: Iterable[ObjectEntry],
        accounts: Iterable[ChunkAccount],
        policies: Mapping[str, str] | None = None,
    ) -> Self:
        """The manifest of a plan and what became of its chunks, in an order that does not depend on who was first.

        :param objects: dead-lettered ones among them.
        """
        written = sorted(objects, key=lambda o: o.key)
        lost = map(ChunkAccount.all_lost, plan.lost_chunks())
        chunks = tuple(sorted([*accounts, *lost], key=lambda a: (a.topic, a.partition, a.start)))
        return cls(
            archive=plan.archive,
            run=plan.run,
            revision=plan.revision,
            plan_digest=plan.digest,
            policies=dict(policies or {}),
            account=totals(chunks),
            objects=tuple(o for o in written if not is_dead_letter(o.key)),
            dead_letters=tuple(o for o in written if is_dead_letter(o.key)),
            chunks=chunks,
        )

    @property
    def stored(self) -> tuple[ObjectEntry, ...]:
        """Every object it promises, dead-lettered ones included."""
        return self.objects + self.dead_letters

    @property
    def rows(self) -> int:
        """How many records its objects hold."""
        return sum(o.rows for o in self.objects)


def discrepancies(plan: Plan, manifest: Manifest) -> list[str]:
    """Why the manifest is not an account of the plan, a sentence each; empty when it is."""
    found: list[str] = []
    if manifest.plan_digest != plan.digest:
        found.append(f"the manifest is of plan {manifest.plan_digest[:12]}, the ledger's is {plan.digest[:12]}")
    planned = {*map(str, plan.chunks()), *map(str, plan.lost_chunks())}
    accounted = {str(a.chunk) for a in manifest.chunks}
    found += [f"no account of {c}" for c in sorted(planned - accounted)]
    found += [f"an account of {c}, which is not in the plan" for c in sorted(accounted - planned)]
    if len(accounted) != len(manifest.chunks):
        found.append("a chunk is accounted for twice")
    if manifest.account != totals(manifest.chunks):
        found.append(f"the account says {manifest.account}, its chunks add up to {totals(manifest.chunks)}")
    for fate, objects in (("archived", manifest.objects), ("dead_lettered", manifest.dead_letters)):
        found += _rows_differ(manifest.chunks, fate, objects)
    return found


def _rows_differ(chunks: Iterable[ChunkAccount], fate: str, objects: Iterable[ObjectEntry]) -> Iterator[str]:
    stored: dict[tuple[str, int, int], int] = {}
    for item in objects:
        place = (item.topic, item.partition, item.chunk_start)
        stored[place] = stored.get(place, 0) + item.rows
    for account in chunks:
        rows = stored.pop((account.topic, account.partition, account.start), 0)
        if rows != getattr(account, fate):
            yield f"{account.chunk}: {getattr(account, fate)} offsets {fate}, but its objects hold {rows} rows"
    for topic, partition, start in sorted(stored):
        yield f"objects of {topic}[{partition}] {start}, a chunk without account"


class Claim(Document):
    """Whose a topic is: two archives that had it in one place would write the same keys."""

    document: Literal["kafka-archiver/claim"] = "kafka-archiver/claim"
    version: Literal[1] = 1
    archive: str
    topic: str


class Commit(Document):
    """The record that a run is final. Written once, never changed."""

    document: Literal["kafka-archiver/commit"] = "kafka-archiver/commit"
    version: Literal[1] = 1
    archive: str
    run: str
    revision: int = 0
    plan_digest: str
    manifest_digest: str
    committed_at: UtcTime


class Intent(Document):
    """The keys that attempts of a run may have made visible before a manifest named them.

    `objects` and `chunks` are what the manifest of the last attempt would have said, but for the store's own ETags.
    """

    document: Literal["kafka-archiver/intent"] = "kafka-archiver/intent"
    version: Literal[1] = 1
    archive: str
    run: str
    keys: tuple[str, ...]
    objects: tuple[ObjectEntry, ...] = ()
    chunks: tuple[ChunkAccount, ...] = ()

"""The manifest: what a run wrote, and the accounts of its chunks (`model/chunk_accounts`). Pure.

Also the other documents of a run: `Claim`, `Intent`, `Commit`, `Settled`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from kafka_archiver.model.chunk_accounts import FATES, ChunkAccount, ChunkPlace, totals
from kafka_archiver.model.layouts.registry import hours_by_path
from kafka_archiver.model.object_keys import is_dead_letter, revision_in
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Choices
from kafka_archiver.values.documents import ArchiveDocument, Count, Size, UtcTime, Value, unwritten
from kafka_archiver.values.gaps import OffsetRange, count, unpack

# Whole hours since 1970 (null: without a usable time), and how many rows are of that hour.
HourRows = tuple[int | None, Annotated[int, Field(gt=0)]]


class ObjectEntry(Value):
    """One object of a run.

    `checksum` is `crc32:` and the CRC-32 of its bytes in eight hexadecimal digits, computed before they were sent;
    `etag` is the store's. Timestamps are the smallest and largest of its records, in milliseconds since 1970.
    `rows_by_hour`: how many rows are of each hour, ascending, null first; null if the path is the hour of them all.
    `records`: the number of records, if some have become several rows; null if each record is one row.
    `sidecar_of`: of a sidecar, the key of the object beside which it is; a sidecar has no rows of its own, and the
    offsets and timestamps of its object.
    """

    key: str
    topic: str
    partition: int
    generation: int
    chunk_start: int
    path: str
    rows: Count
    bytes: Size
    checksum: str
    etag: str
    first_offset: int
    last_offset: int
    min_timestamp: int
    max_timestamp: int
    # Not written if the path is an hour, nor `records` if each record is one row: then the bytes are as before.
    rows_by_hour: tuple[HourRows, ...] | None = unwritten(None)
    records: Annotated[int, Field(gt=0)] | None = unwritten(None)
    sidecar_of: str | None = unwritten(None)

    @model_validator(mode="after")
    def _has_rows_or_an_object(self) -> Self:
        if bool(self.rows) == bool(self.sidecar_of):
            raise ValueError(f"{self.key}: expected rows, or no rows and `sidecar_of`; found {self.rows} rows")
        if self.rows_by_hour and self.rows and sum(rows for _, rows in self.rows_by_hour) != self.rows:
            raise ValueError(f"{self.key}: expected {self.rows} rows in `rows_by_hour`, found {self.rows_by_hour}")
        return self

    @property
    def offsets(self) -> int:
        """The number of offsets that its rows come from."""
        return self.rows if self.records is None else self.records

    @property
    def hours(self) -> Collection[int | None]:
        """The hours that its records may belong to."""
        return [hour for hour, _ in self.rows_by_hour] if self.rows_by_hour else hours_by_path(self.path)

    @property
    def place(self) -> ChunkPlace:
        return self.topic, self.partition, self.chunk_start

    def rows_in(self, hour: int | None) -> int:
        if self.rows_by_hour and self.rows:
            return dict(self.rows_by_hour).get(hour, 0)
        return self.rows if hour in self.hours else 0


def _complete(account: dict[str, int]) -> dict[str, int]:
    """In one order, so that equal manifests have equal bytes."""
    if set(account) != set(FATES):
        raise ValueError(f"expected the counts {', '.join(FATES)}, got {', '.join(account) or 'none'}")
    return {fate: account[fate] for fate in FATES}


class Manifest(ArchiveDocument):
    """The list of what one run wrote. The same plan and records give the same manifest, byte for byte.

    `dead_letters`: the objects of records that the archive's format cannot hold. `sidecars`: objects beside objects,
    for formats that write them; they have no rows. `policies`: those that decided while
    the run was read; they may differ from the plan's. `lost_objects`: objects that were written and cannot be
    recovered; their rows count as lost.
    """

    document: Literal["kafka-archiver/manifest"] = "kafka-archiver/manifest"
    run: str
    revision: int = 0
    plan_digest: str
    policies: Choices = Field(default_factory=dict)
    account: Annotated[dict[str, Count], AfterValidator(_complete)]
    objects: tuple[ObjectEntry, ...]
    dead_letters: tuple[ObjectEntry, ...] = ()
    sidecars: tuple[ObjectEntry, ...] = unwritten(())
    lost_objects: tuple[ObjectEntry, ...] = ()
    chunks: tuple[ChunkAccount, ...]

    @classmethod
    def of(
        cls,
        plan: Plan,
        objects: Iterable[ObjectEntry],
        accounts: Iterable[ChunkAccount],
        policies: Mapping[str, str] | None = None,
    ) -> Self:
        """The manifest of a plan and the accounts of its chunks, in an order that does not depend on the tasks' order.

        :param objects: with the dead-lettered ones and the sidecars.
        """
        written = sorted(objects, key=lambda o: o.key)
        own = [o for o in written if o.sidecar_of is None]
        lost = map(ChunkAccount.all_lost, plan.lost_chunks())
        chunks = tuple(sorted([*accounts, *lost], key=lambda a: a.place))
        return cls(
            archive=plan.archive,
            run=plan.run,
            revision=plan.revision,
            plan_digest=plan.digest,
            policies=dict(policies or {}),
            account=totals(chunks),
            objects=tuple(o for o in own if not is_dead_letter(o.key)),
            dead_letters=tuple(o for o in own if is_dead_letter(o.key)),
            sidecars=tuple(o for o in written if o.sidecar_of is not None),
            chunks=chunks,
        )

    @property
    def stored(self) -> tuple[ObjectEntry, ...]:
        """Every object it promises: with dead-lettered ones and sidecars."""
        return self.objects + self.dead_letters + self.sidecars

    @property
    def rows(self) -> int:
        """The number of rows in its objects, without dead letters."""
        return sum(o.rows for o in self.objects)


def discrepancies(plan: Plan, manifest: Manifest) -> list[str]:
    """The reasons why the manifest is not an account of the plan; empty if it is one."""
    if manifest.plan_digest != plan.digest:
        # A changed plan may have any number of chunks.
        return [f"the manifest is of plan {manifest.plan_digest[:12]}, the ledger's is {plan.digest[:12]}"]
    problems: list[str] = []
    planned = {*map(str, plan.chunks()), *map(str, plan.lost_chunks())}
    accounted = {str(a) for a in manifest.chunks}
    problems += [f"no account of {c}" for c in sorted(planned - accounted)]
    problems += [f"an account of {c}, which is not in the plan" for c in sorted(accounted - planned)]
    if len(accounted) != len(manifest.chunks):
        problems.append("a chunk is accounted for twice")
    if manifest.account != totals(manifest.chunks):
        problems.append(f"the account says {manifest.account}, its chunks add up to {totals(manifest.chunks)}")
    if (gone := {o.key for o in manifest.lost_objects}) != set(plan.lost_objects):
        problems.append(f"the lost objects {sorted(gone)} are not those of the plan: {sorted(plan.lost_objects)}")
    for fate, objects in (("archived", manifest.objects), ("dead_lettered", manifest.dead_letters)):
        held_rows = by_chunk((o, o.rows) for o in objects)
        for account in manifest.chunks:
            rows = held_rows.pop(account.place, 0)
            if rows != account.stored[fate]:
                rows_of = "" if account.rows is None else f" in {account.stored[fate]} rows"
                offsets = f"{getattr(account, fate)} offsets {fate}{rows_of}"
                problems.append(f"{account}: {offsets}, its objects hold {rows} rows")
        problems += [f"objects of {topic}[{n}] {start}, a chunk without account" for topic, n, start in held_rows]
    problems += _sidecars(manifest)
    problems += _lost(manifest, plan.settings.transform is not None)
    return problems


def _lost(manifest: Manifest, shared: bool) -> Iterator[str]:
    """Lost offsets are in the ranges or in lost objects.

    :param shared: two lost objects may have rows of the same record.
    """
    most, least = by_chunk((o, o.offsets) for o in manifest.lost_objects), dict[ChunkPlace, int]()
    for item in manifest.lost_objects:
        least[item.place] = max(least.get(item.place, 0), item.offsets)
    for account in manifest.chunks:
        listed = count(unpack(account.start, account.end, account.lost_ranges)) if account.lost_ranges else 0
        sure = (least if shared else most).get(account.place, 0)
        if not sure <= account.lost - listed <= most.get(account.place, 0):
            yield f"{account}: {account.lost} offsets lost, but not in its ranges and lost objects"


def _sidecars(manifest: Manifest) -> Iterator[str]:
    """If an object has a sidecar, every object of that revision has one, except where it is lost.

    A replay of dead letters keeps objects of earlier revisions, whose format may be another one.
    """
    if manifest.sidecars:
        having = {o.sidecar_of for o in manifest.sidecars}
        keys = {o.key for o in manifest.objects}
        lost = {o.sidecar_of for o in manifest.lost_objects}
        revisions = {revision_in(key) for key in having | lost if key}
        bare = (key for key in keys - having - lost if revision_in(key) in revisions)
        yield from (f"{key} has no sidecar" for key in sorted(bare))
        yield from (f"a sidecar of {key}, which is not an object" for key in sorted(filter(None, having - keys)))


def by_chunk(counts: Iterable[tuple[ObjectEntry, int]]) -> dict[ChunkPlace, int]:
    """The sum over the objects of each chunk."""
    sums: dict[ChunkPlace, int] = {}
    for item, number in counts:
        sums[item.place] = sums.get(item.place, 0) + number
    return sums


class Claim(ArchiveDocument):
    """The archive that has a topic: two archives of one topic in one place would write the same keys."""

    document: Literal["kafka-archiver/claim"] = "kafka-archiver/claim"
    topic: str


# committed: the run is final. replaced: not final, and a further revision has its offsets. given_up: a rebuild that
# never became final.
Outcome = Literal["committed", "replaced", "given_up"]


class Commit(ArchiveDocument):
    """The end of a run. Written once, never changed.

    A run that was replaced or given up has no `manifest_digest`; `by` is the run that ended it.
    """

    document: Literal["kafka-archiver/commit"] = "kafka-archiver/commit"
    run: str
    revision: int = 0
    outcome: Outcome = "committed"
    by: str | None = None
    plan_digest: str
    manifest_digest: str | None
    committed_at: UtcTime

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        committed = self.outcome == "committed"
        if (committed, not committed) != (self.manifest_digest is not None, self.by is not None):
            raise ValueError("expected a manifest digest of a committed run, else the run that ended this one")
        return self


class Intent(ArchiveDocument):
    """The objects that attempts of a run may have made visible before the manifest exists.

    Only the attempt that wrote the intent last may complete its uploads. A later attempt must first take the intent,
    under the next number; from then on nothing of the earlier attempt is completed. `done`: all objects are visible,
    and `objects` and `chunks` are those of the manifest. `closed`: another run has replaced this one, and nothing of it
    is completed any more. `keys`: of all attempts.
    """

    document: Literal["kafka-archiver/intent"] = "kafka-archiver/intent"
    run: str
    attempt: Annotated[int, Field(ge=1)]
    done: bool = False
    closed: bool = False
    policies: Choices = Field(default_factory=dict)
    keys: tuple[str, ...]
    objects: tuple[ObjectEntry, ...] = ()
    chunks: tuple[ChunkAccount, ...] = ()

    def manifest(self, plan: Plan) -> Manifest:
        """The manifest of an attempt that made everything visible."""
        return Manifest.of(plan, self.objects, self.chunks, self.policies)


class Settled(ArchiveDocument):
    """The record of settling a run: the hours that it closed, and the complete hours that it changed. Derived.

    Whole hours since 1970, as ranges; records without a time are in none. `stretches`: hours without a record that it
    made complete, and that have no proof of their own.
    """

    document: Literal["kafka-archiver/settled"] = "kafka-archiver/settled"
    run: str
    number: int
    closed: tuple[OffsetRange, ...] = ()
    changed: tuple[OffsetRange, ...] = ()
    stretches: tuple[OffsetRange, ...] = unwritten(())

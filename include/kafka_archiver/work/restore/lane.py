"""A lane: the records of one target partition, from the archive, in the order in which they are written.

The order depends on the plan alone: one source partition after the other, each by offset. Only one chunk's objects are
open at a time, as copies that were compared with the manifest before their first record is given.
"""

import base64
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import IntegrityError, PermanentError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.restore import Inexact, RestorePlan, RestoreSource, SelectedHeader, TargetTopic
from kafka_archiver.model.restore_progress import START, Place
from kafka_archiver.reader.chunks import Written
from kafka_archiver.reader.runs import require_committed
from kafka_archiver.reader.selection import Selection
from kafka_archiver.records.decode.reframe import Reframer
from kafka_archiver.records.formats.base import is_typed
from kafka_archiver.records.reading.merge import OFFSET, merged
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.values.columns import column
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.adopted import ADOPTED, adopted_rows, lost_of
from kafka_archiver.work.restore.counts import selection_of
from kafka_archiver.work.restore.exact import kind_of, refusal, writable
from kafka_archiver.work.restore.partitioners import partition_of, partitions_of

# The number of records that nobody has, by the partition of the source.
Lost = Counter[int]
# Before more bytes of objects are read than so many, who waits for records is told so; a request counts as some.
QUIET, REQUEST = 8 << 20, 256 << 10


class UnknownFrameError(PermanentError):
    """A record whose schema id is missing, truncated or not one of the archive's."""


class LaneBatch(NamedTuple):
    """Records of one source partition, as the target gets them. `source`: its index in the lane."""

    source: int
    records: pa.RecordBatch

    def sliced(self, start: int, rows: int | None = None) -> "LaneBatch":
        """Return some of its records."""
        return LaneBatch(self.source, self.records.slice(start, rows))


@dataclass
class _Reading:
    """One pass over a lane. `lost`: counts lost records. `silent`: bytes read since who waits was told so."""

    copies: Copies
    lost: Lost
    silent: int = 0

    def is_quiet(self, size: int) -> bool:
        """Return True if who waits has to be told so before so many more bytes are read."""
        self.silent += size
        if is_quiet := self.silent > QUIET:
            self.silent = 0
        return is_quiet


@dataclass(frozen=True)
class Lane:
    """The records of a target partition. `allowed`: what need not be exact."""

    ledger: Ledger
    plan: RestorePlan
    target: TopicPartition
    allowed: frozenset[Inexact]

    @property
    def sources(self) -> tuple[RestoreSource, ...]:
        """Its source partitions, in the order of writing."""
        return self.plan.sources_of(self.target)

    @property
    def promised(self) -> int | None:
        """The number of records that the manifests promise, lost ones too; None: only the records themselves tell."""
        if self._target_topic.partitioner != "same" or not all(source.exact for source in self.sources):
            return None
        return sum(source.records + source.lost for source in self.sources)

    def excluded(self, lost: Lost) -> dict[str, int]:
        """Return the number of records that are left out, by the option that allows it.

        Lost records count where records without a key go: nobody knows their keys.
        """
        topic = self._target_topic
        count = sum(
            number
            for partition, number in lost.items()
            if partition_of(None, topic.partitioner, topic.partitions, partition) == self.target.partition
        )
        return {"lost": count} if count else {}

    def batches(self, place: Place = START, lost: Lost | None = None) -> Iterator[LaneBatch | None]:
        """Yield the records from a place on, as `read`."""
        for batch in self.read(place, lost):
            if batch is None or self._target_topic.partitioner == "same":
                yield batch
            elif (own := self.routed(batch).get(self.target.partition)) is not None:
                yield own

    def routed(self, batch: LaneBatch) -> dict[int, LaneBatch]:
        """Return the records of a batch of `read` by their target partition."""
        topic, records = self._target_topic, batch.records
        source = self.sources[batch.source].partition
        chosen = partitions_of(records.column("key"), topic.partitioner, topic.partitions, source)
        return {
            partition: LaneBatch(batch.source, records.filter(pa.array(chosen == partition)))
            for partition in np.unique(chosen).tolist()
        }

    def read(self, place: Place = START, lost: Lost | None = None) -> Iterator[LaneBatch | None]:
        """Yield the records of its source partitions from a place on, also those of other target partitions.

        None: the next records may take a while, as much is read before.

        :param lost: gets the number of lost records.
        :raises IntegrityError: an object or a document is missing, damaged, or another one.
        :raises NotExactError: records would be changed, and that is not allowed.
        """
        with Copies() as copies:
            reading = _Reading(copies, Counter() if lost is None else lost)
            for index, source in enumerate(self.sources):
                if index < place.source:
                    continue
                start = place.offset if index == place.source else 0
                for batch in self._of_source(source, start, reading):
                    yield batch if batch is None else LaneBatch(index, batch)

    def _of_source(self, source: RestoreSource, start: int, reading: _Reading) -> Iterator[pa.RecordBatch | None]:
        last: tuple[str, Written] | None = None
        for page in self.ledger.restore_pages(self.plan.restore, source, start):
            for first, end, number in page.slices:
                if end <= start:
                    continue
                run, digest = page.runs[number]
                if run == ADOPTED:
                    reading.lost[source.partition] += lost_of(self.ledger, source)
                    yield from self._of_adopted(source, digest, Range(max(start, first), end), reading)
                    continue
                if last is None or last[0] != run:
                    if reading.is_quiet(REQUEST):
                        yield None
                    last = (run, self._written(run, digest))
                yield from self._of_slice(source, last[1], Range(first, end), start, reading)

    def _written(self, run: str, digest: str) -> Written:
        plan, manifest = self.ledger.plan(run), self.ledger.sound_manifest(run)
        if plan is None or manifest is None or manifest.digest != digest:
            raise IntegrityError(
                f"run {run} of archive {self.ledger.archive} has no plan any more, or not the manifest {digest[:12]} "
                "that the restore's plan names: restore these documents from a version or copy of the store"
            )
        require_committed(self.ledger, run, plan.digest, manifest.plan_digest)
        return Written(self.ledger, plan, manifest)

    def _of_slice(
        self, source: RestoreSource, written: Written, part: Range, start: int, reading: _Reading
    ) -> Iterator[pa.RecordBatch | None]:
        place = (source.topic, source.partition, source.generation)
        selection = selection_of(self.plan.selection, place, Range(max(start, part.start), part.end))
        accounts = [
            account
            for account in written.manifest.chunks
            if (account.topic, account.partition, account.generation) == place
            and account.start < selection.offsets.end
            and selection.offsets.start < account.end
        ]
        for account in sorted(accounts, key=lambda account: account.start):
            if account.lost and "lost" not in self.allowed:
                raise refusal("lost", account.lost, str(account))
            reading.lost[source.partition] += account.lost
            yield from self._of_chunk(source, written, account, selection, reading)

    def _of_adopted(
        self, source: RestoreSource, digest: str, offsets: Range, reading: _Reading
    ) -> Iterator[pa.RecordBatch | None]:
        for size, batches in adopted_rows(self.ledger, source, digest, offsets, self.allowed):
            if reading.is_quiet(REQUEST + size):
                yield None
            yield from self._of_batches(source, batches, reading)

    def _of_batches(
        self, source: RestoreSource, batches: Iterator[pa.RecordBatch], reading: _Reading
    ) -> Iterator[pa.RecordBatch | None]:
        """Yield what is selected of some batches."""
        for batch in batches:
            records = self._selected(source, batch)
            if records.num_rows:
                yield records
            elif reading.is_quiet(batch.nbytes):
                yield None

    def _of_chunk(
        self, source: RestoreSource, written: Written, account: ChunkAccount, selection: Selection, reading: _Reading
    ) -> Iterator[pa.RecordBatch | None]:
        entries = [entry for entry in objects_of(written, account, self.plan) if selection.may_have(entry)]
        for entry in entries:
            target = written.target(entry)
            kind = None if is_dead_letter(entry.key) else kind_of(target.settings, is_typed(target.schema))
            if kind and kind not in self.allowed:
                raise refusal(kind, entry.rows, entry.key)
        entries.sort(key=lambda entry: entry.first_offset)
        if reading.is_quiet(sum(REQUEST + entry.bytes for entry in entries)):
            yield None
        reading.copies.clear()
        try:
            parts = [self._rows(written, entry, selection, written.whole(entry, reading.copies)) for entry in entries]
        except IntegrityError as error:
            if by := self.ledger.superseded_by(written.plan.run):
                raise IntegrityError(
                    f"run {written.plan.run} was replaced by {by} since restore {self.plan.restore} was planned, and "
                    "its objects are gone: begin a restore of another name"
                ) from error
            raise
        yield from self._of_batches(source, merged(parts, "offset"), reading)

    def _rows(
        self, written: Written, entry: ObjectEntry, selection: Selection, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        target = written.target(entry)
        for batch in batches:
            rows = selection.rows(batch, entry, target, OFFSET.name)
            if rows.num_rows:
                yield writable(rows, entry, f"{entry.topic}[{entry.partition}]", self.allowed)

    @cached_property
    def _keys(self) -> pa.Array:
        return pa.array([base64.b64decode(key) for key in self.plan.selection.keys], pa.large_binary())

    @cached_property
    def _target_topic(self) -> TargetTopic:
        [topic] = (topic for topic in self.plan.topics if topic.topic == self.target.topic)
        return topic

    @cached_property
    def _reframers(self) -> dict[str, Reframer]:
        """The rewriters of schema ids, by source topic."""
        by_topic: dict[str, dict[str, dict[int, int]]] = {}
        for framed in self.plan.schema_ids:
            by_topic.setdefault(framed.topic, {})[framed.column] = dict(framed.ids)
        return {topic: Reframer(ids) for topic, ids in by_topic.items()}

    def _selected(self, source: RestoreSource, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records that their contents select."""
        asked = self.plan.selection
        if asked.as_of is not None:
            batch = batch.filter(pa.array(column(batch, "timestamp") < asked.as_of))
        if asked.keys:
            batch = batch.filter(pc.is_in(batch.column("key"), self._keys))
        if asked.headers:
            rows = [has_headers(headers, asked.headers) for headers in batch.column("headers").to_pylist()]
            batch = batch.filter(pa.array(rows, pa.bool_()))
        if (reframer := self._reframers.get(source.topic)) and batch.num_rows:
            batch = _reframed(reframer, batch, source)
        return batch


def _reframed(reframer: Reframer, batch: pa.RecordBatch, source: RestoreSource) -> pa.RecordBatch:
    changed, reasons = reframer.records(batch)
    if reasons:
        row, reason = min(reasons.items())
        raise UnknownFrameError(
            f"{source} offset {offsets_of(batch)[row]} names no schema that the target's registry has: {reason}; and "
            f"{len(reasons) - 1} more records of the same batch. Restore without it (--dead-letters without, if it is "
            "one; --start, --end), or the bytes as they are (without --registry)"
        )
    return changed


def objects_of(written: Written, account: ChunkAccount, plan: RestorePlan) -> list[ObjectEntry]:
    """Return the objects of a chunk that a restore reads: archived records and dead letters, as its selection says."""
    choice = plan.selection.dead_letters
    place = (account.topic, account.partition, account.generation, account.start)
    letters = (
        entry
        for entry in written.manifest.dead_letters
        if (entry.topic, entry.partition, entry.generation, entry.chunk_start) == place
    )
    archived = written.objects_of(account) if choice != "only" else []
    return [*archived, *(letters if choice != "without" else ())]


def has_headers(headers: list[dict[str, str | bytes | None]], asked: tuple[SelectedHeader, ...]) -> bool:
    """Return True if a record has all headers that are asked for."""
    pairs = {(header["key"], header["value"]) for header in headers}
    names = {name for name, _ in pairs}
    return all(
        header.name in names if header.value is None else (header.name, base64.b64decode(header.value)) in pairs
        for header in asked
    )


def offsets_of(batch: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the offsets of records: of a lane's, those in the source."""
    return column(batch, "offset")

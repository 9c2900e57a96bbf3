"""The records of one chunk, from its objects, and of one object by its key, as the plan that wrote it says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import BinaryIO, cast

import pyarrow as pa

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.manifest import Manifest, ObjectEntry
from kafka_archiver.model.object_keys import is_dead_letter, run_name, split_object_key
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.schemas import Schema
from kafka_archiver.reader.runs import Plans
from kafka_archiver.records.formats import get_format
from kafka_archiver.records.formats.base import VALUE, Buffer, ReadsFrom, Sought, Target
from kafka_archiver.records.formats.jsonl.objects import lines_of
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.records.reading.files import fetch_from
from kafka_archiver.records.reading.merge import OFFSET
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.records.reading.opener import joins_values, missing, naming, open_content, open_object
from kafka_archiver.records.reading.targets import offsets_of, target_of
from kafka_archiver.values.checksum import crc32, spelt
from kafka_archiver.values.columns import Int64s
from kafka_archiver.values.ranges import TopicPartition

# Bytes that are read of a copy at once.
_PIECE = 1 << 20


def is_values(batch: pa.RecordBatch) -> bool:
    """Return True if a batch has values as they were, and nothing else."""
    return bool(batch.schema.names == ["value"] and batch.schema.field(0).type == VALUE.field("value").type)


@dataclass(frozen=True)
class Written:
    """A run that counts: its plan, and what it wrote."""

    ledger: Ledger
    plan: Plan
    manifest: Manifest
    # By the object's key, and by the revision.
    _targets: dict[str, Target] = field(default_factory=dict)
    _schemas: dict[str, Mapping[str, Schema]] = field(default_factory=dict)
    _keys: dict[str, DataKey] = field(default_factory=dict, repr=False)
    # Objects whose format may not tell where a value ends: True if each row is one value.
    _has_each_value: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def _sidecars(self) -> Mapping[str | None, ObjectEntry]:
        return {entry.sidecar_of: entry for entry in self.manifest.sidecars}

    def objects_of(self, account: ChunkAccount) -> list[ObjectEntry]:
        """Return the objects of a chunk."""
        return [o for o in self.manifest.objects if is_of(o, account)]

    def target(self, entry: ObjectEntry) -> Target:
        """Return an object as it was written: by the revision that wrote it, which may be an earlier one."""
        if entry.key not in self._targets:
            writer = self.ledger.writer_of(self.plan, entry.key)
            if writer.run not in self._schemas:
                self._schemas[writer.run] = self.ledger.schemas(writer.fingerprints)
            self._targets[entry.key] = target_of(entry, writer, self._schemas[writer.run])
        return self._targets[entry.key]

    def knows_offsets(self, entry: ObjectEntry) -> bool:
        """Return True if the offset of each row of an object is known. Ask after `whole`, which may have to count."""
        schema = self.target(entry).schema
        has_column = not schema.equals(VALUE) and any(kafkas(field) == "offset" for field in schema)
        return has_column or self._derived(entry) is not None

    def whole(self, entry: ObjectEntry, copies: Copies) -> Iterator[pa.RecordBatch]:
        """Read an object that was compared with its checksum before; the batches have `OFFSET`."""
        fetch = copies.add(entry, fetch_from(self.ledger.store, entry.key, missing))
        target = self.target(entry)
        read = partial(open_object, entry, target, fetch, self.find_key, _PIECE, is_compared=True)
        if joins_values(target):
            self._has_each_value[entry.key] = sum(batch.num_rows for batch in read()) == entry.rows
        return self._with_offsets(entry, 0, read())

    def since(self, entry: ObjectEntry, offset: int, copies: Copies) -> Iterator[pa.RecordBatch]:
        """Read an object from an offset on, or from somewhere before it, with as few bytes as its format can."""
        target = self.target(entry)
        reads = get_format(target.settings.format)
        if not isinstance(reads, ReadsFrom):
            yield from self.whole(entry, copies)
            return
        fetch = fetch_from(self.ledger.store, entry.key, missing)
        offsets = self._derived(entry)
        row = None if offsets is None else int(offsets.searchsorted(offset))
        with naming(entry):
            source = cast(BinaryIO, open_content(entry, fetch, self.find_key))
            begun = reads.read_from(source, target, Sought(offset, row, entry.rows, partial(self._sidecar, entry)))
            yield from self._with_offsets(entry, *begun) if begun else self.whole(entry, copies)

    def find_key(self, key_id: str) -> DataKey:
        """Return a data key. Raises as `Ledger.open_key`."""
        if key_id not in self._keys:
            self._keys[key_id] = self.ledger.open_key(key_id)
        return self._keys[key_id]

    def _sidecar(self, entry: ObjectEntry) -> bytes | None:
        sidecar = self._sidecars.get(entry.key)
        if sidecar is None:
            return None
        store = self.ledger.store
        data = fetch_from(store, sidecar.key, missing)(0, sidecar.bytes)
        if spelt(crc32(data)) != sidecar.checksum:
            raise IntegrityError(
                f"{sidecar.key} is not the object that its manifest promises: expected {sidecar.bytes} bytes with "
                f"checksum {sidecar.checksum}"
            )
        content = open_content(sidecar, lambda start, length: data[start : start + length], self.find_key)
        return content.read()

    def _derived(self, entry: ObjectEntry) -> Int64s | None:
        """Return the offset of each row by the account; None: it does not tell."""
        return offsets_of(self.manifest, entry) if self._has_each_value.get(entry.key, True) else None

    def _with_offsets(
        self, entry: ObjectEntry, row: int, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        derived = self._derived(entry)
        for batch in batches:
            if not batch.num_rows:
                continue
            own = next((f.name for f in batch.schema if kafkas(f) == "offset"), None)
            if own is not None:
                offsets = batch.column(own)
            elif derived is not None:
                offsets = pa.array(derived[row : row + batch.num_rows], OFFSET.type)
            else:
                offsets = pa.nulls(batch.num_rows, OFFSET.type)
            row += batch.num_rows
            yield batch.append_column(OFFSET, offsets)


def is_of(entry: ObjectEntry, account: ChunkAccount) -> bool:
    """Return True if an object is of a chunk."""
    return (entry.place, entry.generation) == (account.place, account.generation)


def written_at(ledger: Ledger, key: str) -> tuple[Written, ObjectEntry] | None:
    """Return the run that wrote an object of records, and the object's entry; None: the ledger does not tell.

    :param key: its name has topic, partition and chunk; with another template of names the ledger is not searched.
    """
    place = split_object_key(key)
    if place is None or is_dead_letter(key):
        return None
    plan = Plans(ledger).with_offset(TopicPartition(place.topic, place.partition), place.start, place.generation)
    run = plan and run_name(plan.interval.id, place.revision)
    effective, manifest = (ledger.plan(run), ledger.sound_manifest(run)) if run else (None, None)
    if effective is None or manifest is None:
        return None
    written = Written(ledger, effective, manifest)
    return next(((written, entry) for entry in manifest.objects if entry.key == key), None)


def written_lines(written: Written, entry: ObjectEntry) -> Iterator[Buffer]:
    """Yield the records of an object as lines of JSON, as `format: jsonl` writes them; values alone as they are.

    :raises IntegrityError: the object is missing or damaged; nothing was yielded.
    """
    target = written.target(entry)
    encode = lines_of(target)
    with Copies() as copies:
        for batch in written.whole(entry, copies):
            yield from encode(batch.drop_columns([OFFSET.name]), target)

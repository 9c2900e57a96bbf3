"""Single records by their offsets, with few requests and few bytes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import Action, advise
from kafka_archiver.messages.advice import audit, print_object, runs
from kafka_archiver.messages.errors import ArchiverError, ConfigError, IntegrityError
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.settings import Settings
from kafka_archiver.reader.adopted import adopted_record
from kafka_archiver.reader.chunks import Written, is_of, is_values
from kafka_archiver.reader.runs import Plans, require_committed, unless_replaced
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.records.formats.jsonl.objects import object_lines
from kafka_archiver.records.reading.files import fetch_from
from kafka_archiver.records.reading.merge import OFFSET, merged
from kafka_archiver.records.reading.object_copies import Copies
from kafka_archiver.records.reading.opener import missing, open_object
from kafka_archiver.values.columns import column
from kafka_archiver.values.gaps import unpack
from kafka_archiver.values.ranges import TopicPartition

_PLACE = re.compile(r"(?P<topic>[^+@]+)\+(?P<partition>\d{1,10})@(?P<offset>\d{1,19})")
# The columns of records of which the archive has only the values.
_VALUES = pa.schema([*(RECORD.field(name) for name in ("topic", "partition", "offset", "value"))])
# The object of each row, in a column after those of the object: its number among the chunk's.
_OBJECT = pa.field("kafka_archiver.object", pa.int32())


class DeadLetterError(ConfigError):
    """A record is a dead letter. `entry`: the object that has it."""

    def __init__(self, message: str, entry: ObjectEntry, advice: str = "", actions: Iterable[Action] = ()) -> None:
        super().__init__(message, advice, actions)
        self.entry = entry


class _Shown:
    """The rows that were given: those of the first `count` offsets. A record may have several rows, in several batches.

    :param first: the first offset that may come.
    """

    def __init__(self, first: int, count: int) -> None:
        self.offsets, self._count, self._last, self._is_past = 0, count, first - 1, False

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that are to be given."""
        offsets = column(batch, OFFSET.name)
        new = np.unique(offsets[offsets > self._last])
        taken = new[: self._count - self.offsets]
        self._is_past = len(taken) < len(new)
        self.offsets += len(taken)
        self._last = int(taken[-1]) if len(taken) else self._last
        return batch.slice(0, int(offsets.searchsorted(self._last, side="right")))

    def is_complete(self, has_repeats: bool) -> bool:
        """Return True if no row can follow.

        :param has_repeats: the last record may have more rows.
        """
        return self._is_past or (self.offsets == self._count and not has_repeats)


def record_place(text: str) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of `orders+3@12345`.

    :raises ConfigError: it is something else.
    """
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ConfigError(f"expected topic, partition and offset like orders+3@12345, found {text!r}")
    return TopicPartition(match["topic"], int(match["partition"])), int(match["offset"])


def json_lines(batch: pa.RecordBatch, name: TopicPartition) -> bytes:
    """Return a line for each row, as `format: jsonl`, `content: record` writes it."""
    target = Target(topic=name.topic, partition=name.partition, key="", settings=Settings(), schema=batch.schema)
    return b"".join(bytes(piece) for piece in object_lines(batch, target))


@dataclass(frozen=True, slots=True)
class Lookup:
    """The records of one partition of an archive, by offset.

    :param generation: None: the newest one that has the first offset.
    """

    ledger: Ledger
    name: TopicPartition
    generation: int | None = None

    def records(self, offset: int, count: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield the record at an offset, or `count` records from it on: fewer at the end of what is archived.

        The batches have the columns of the objects; of values alone, topic, partition, offset and value.

        :raises ConfigError: the archive has no record at the offset; the message says what became of it.
        :raises IntegrityError: an object is missing or damaged.
        :raises TransientError: a revision has replaced the run meanwhile.
        """
        for rows, _ in self._rows(offset, count):
            yield self._shown(rows)

    def located(self, offset: int, count: int = 1) -> Iterator[tuple[pa.RecordBatch, list[ObjectEntry | None]]]:
        """Yield the batches of `records`, each with the object that has each row; None: an adopted one."""
        for rows, objects in self._rows(offset, count):
            numbers = rows.column(_OBJECT.name).to_pylist() if objects else [None] * len(rows)
            yield self._shown(rows), [None if number is None else objects[number] for number in numbers]

    def _rows(self, offset: int, count: int) -> Iterator[tuple[pa.RecordBatch, list[ObjectEntry]]]:
        """Yield rows, and the objects that `_OBJECT` numbers; none: the rows are as they are shown."""
        plans = Plans(self.ledger)
        if adoption := self._adopted(plans, offset):
            for batch in adopted_record(self.ledger, adoption, self.name, offset, count):
                yield batch, []
            return
        run, account = self._account(plans, offset)
        if gone := _without_record(account, offset):
            raise self._not_archived(run, offset, gone)
        shown = _Shown(offset, count)
        while True:
            objects = run.objects_of(account)
            with unless_replaced(self.ledger, run.plan.run), Copies() as copies:
                for batch in self._of_chunk(run, account, objects, offset, copies, count):
                    if not shown.offsets and column(batch, OFFSET.name)[0] != offset:
                        raise self._none_at(run, account, offset)
                    rows = shown.take(batch)
                    if rows.num_rows:
                        yield rows, objects
                    if shown.is_complete(_has_repeats(account)):
                        return
                if not shown.offsets:
                    raise self._none_at(run, account, offset)
            if shown.offsets == count:
                return
            following = Lookup(self.ledger, self.name, account.generation)
            try:
                # Between two runs there may be offsets that no run has.
                offset = plans.next_offset(self.name, account.end, account.generation)
                run, account = following._account(plans, offset)
            except ConfigError:
                return

    def _adopted(self, plans: Plans, offset: int) -> Adoption | None:
        """Return what was adopted, if an offset is to be looked up there: no run has it."""
        if self.generation or (plans.last and plans.with_offset(self.name, offset, self.generation)):
            return None
        adoption = self.ledger.adoption()
        return adoption if adoption and adoption.partition(*self.name) else None

    def _account(self, plans: Plans, offset: int) -> tuple[Written, ChunkAccount]:
        """Return the run that counts for an offset, and the account of the chunk.

        :raises ConfigError: no run is committed that has the offset.
        """
        plan = plans.with_offset(self.name, offset, self.generation)
        if plan is None:
            raise ConfigError(self._not_planned(plans, offset))
        run = self.ledger.last_committed(plan.interval.id)
        if run is None:
            raise ConfigError(
                f"{self.name} offset {offset} is in the plan of run {plan.run}, which is not committed yet.",
                *advise(runs(self.ledger.archive), " shows its state"),
            )
        counting, manifest = self.ledger.plan(run), self.ledger.sound_manifest(run)
        if counting and manifest:
            require_committed(self.ledger, run, counting.digest, manifest.plan_digest)
        generations = {p.generation for p in plan.partitions if p.name == self.name}
        account = next(
            (
                account
                for account in (manifest.chunks if manifest else ())
                if (account.topic, account.partition) == self.name
                and account.start <= offset < account.end
                and account.generation in generations
            ),
            None,
        )
        if counting is None or manifest is None or account is None:
            raise IntegrityError(f"run {run} of archive {self.ledger.archive} has no account of {self.name} {offset}")
        return Written(self.ledger, counting, manifest), account

    def _not_planned(self, plans: Plans, offset: int) -> str:
        which = "" if self.generation is None else f" of generation {self.generation}"
        known = plans.progress.partition(self.name)
        if known is None and not plans.unsettled:
            return f"archive {self.ledger.archive} has no partition {self.name}"
        ranges = ", ".join(f"[{start}, {end})" for start, end in known.covered) if known else ""
        return (
            f"archive {self.ledger.archive} has no run with offset {offset}{which} of {self.name}: expected one of "
            f"{ranges or 'no offsets yet'}, the offsets of its runs"
        )

    def _of_chunk(
        self, run: Written, account: ChunkAccount, objects: list[ObjectEntry], offset: int, copies: Copies, count: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a chunk from an offset on, in the order of offsets, with `_OBJECT`.

        :param count: the number of records that are asked for; of one, its rows may be all that come.
        """
        numbered = [(number, o) for number, o in enumerate(objects) if o.last_offset >= offset]
        if count == 1:
            numbered = [(number, o) for number, o in numbered if o.first_offset <= offset]

        def rows_of(number: int, entry: ObjectEntry) -> Iterator[pa.RecordBatch]:
            url = f"{self.ledger.store.url}/{entry.key}"
            return _numbered(_since(run.since(entry, offset, copies), entry, offset, url), number)

        if count > 1 or _has_repeats(account):
            yield from merged([rows_of(*pair) for pair in numbered], OFFSET.name)
            return
        # The object of the fewest other offsets is the likeliest one.
        for number, entry in sorted(numbered, key=lambda pair: pair[1].last_offset - pair[1].first_offset):
            rows = next(rows_of(number, entry), None)
            if rows is not None and column(rows, OFFSET.name)[0] == offset:
                yield rows
                return

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if OFFSET.name not in batch.schema.names:
            return batch
        offsets, records = batch.column(OFFSET.name), batch.drop_columns([OFFSET.name, _OBJECT.name])
        if not is_values(records):
            return records
        places = [
            pa.repeat(pa.scalar(at, field.type), len(records)) for at, field in zip(self.name, _VALUES, strict=False)
        ]
        return pa.RecordBatch.from_arrays([*places, offsets, records.column(0)], schema=_VALUES)

    def _not_archived(self, run: Written, offset: int, why: str) -> ConfigError:
        """Return the error about an offset without a record, by the account."""
        return ConfigError(
            f"{self.name} offset {offset} is not archived: {why}; so says the account of run {run.plan.run}"
        )

    def _none_at(self, run: Written, account: ChunkAccount, offset: int) -> ArchiverError:
        """Return the error that says what became of an offset of which no object has a record."""
        where, name = f"{self.name} offset {offset}", run.plan.run
        for entry in run.manifest.dead_letters:
            if _has(entry, account, offset) and self._is_dead_letter(run, entry, offset):
                return DeadLetterError(
                    f"{where} is a dead letter; its reason is the `error` that this shows:",
                    entry,
                    *advise(print_object(f"{self.ledger.store.url}/{entry.key}")),
                )
        lost = [entry.key for entry in run.manifest.lost_objects if _has(entry, account, offset)]
        if lost:
            return ConfigError(
                f"{where} is in no object of run {name}; it was filtered, or lost with {' or '.join(lost)}, which "
                "nobody could recover"
            )
        if not account.filtered:
            # A damaged footer or index may hide a row: whole objects are compared with their checksums.
            return IntegrityError(
                f"{where} is in no object of run {name}, whose account has filtered no record from {account.start} to "
                f"{account.end - 1}: an object of these is damaged.",
                *advise(audit(self.ledger.archive, deep=True), " names it"),
            )
        return ConfigError(f"{where} is not archived: run {name} filtered it (`transform`, or `policies`)")

    def _is_dead_letter(self, run: Written, entry: ObjectEntry, offset: int) -> bool:
        fetch = fetch_from(self.ledger.store, entry.key, missing)
        batches = open_object(entry, run.target(entry), fetch, self.ledger.open_key)
        return any((column(batch, "offset") == offset).any() for batch in batches)


def _without_record(account: ChunkAccount, offset: int) -> str:
    """Return why there is no record at an offset, as the account says; empty: it names no reason."""
    for ranges, why in (
        (account.absent_ranges, "Kafka had no record there (compacted away, aborted, or a control record)"),
        (account.lost_ranges, "lost: Kafka had dropped it before it was archived"),
    ):
        if any(start <= offset < end for start, end in unpack(account.start, account.end, ranges).tolist()):
            return why
    return ""


def _has_repeats(account: ChunkAccount) -> bool:
    """Return True if some records of a chunk have several rows."""
    return account.rows is not None


def _has(entry: ObjectEntry, account: ChunkAccount, offset: int) -> bool:
    return is_of(entry, account) and (entry.first_offset <= offset <= entry.last_offset)


def _since(batches: Iterator[pa.RecordBatch], entry: ObjectEntry, offset: int, url: str) -> Iterator[pa.RecordBatch]:
    """The rows from an offset on.

    :param url: of the object.
    :raises ConfigError: the object does not tell which rows these are.
    """
    for batch in batches:
        if batch.column(OFFSET.name).null_count:
            raise ConfigError(
                f"{entry.key} has values without their offsets, of the offsets {entry.first_offset} to "
                f"{entry.last_offset} and of others between them in other objects, so nobody can tell which is at "
                f"{offset}.",
                *advise(print_object(url), " prints all of them; `store.content: record` keeps offsets"),
            )
        rows = batch.slice(int(column(batch, OFFSET.name).searchsorted(offset)))
        if rows.num_rows:
            yield rows


def _numbered(batches: Iterator[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    """Append the number of their object to rows."""
    for batch in batches:
        yield batch.append_column(_OBJECT, pa.repeat(pa.scalar(number, _OBJECT.type), len(batch)))

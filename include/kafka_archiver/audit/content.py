"""Checks one object's bytes and records against its entry in the manifest."""

import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import BinaryIO

from kafka_archiver.audit.readers import reader_of
from kafka_archiver.audit.readers.base import Fetch, RecordCoordinates, SidecarOwner
from kafka_archiver.audit.readers.sealed import Unsealed
from kafka_archiver.messages.errors import ArchiverError, error_in_words
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import is_dead_letter
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.checksum import spelt
from kafka_archiver.values.intervals import hour_of
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.values.segmented import Segmented

PIECE = 8 << 20
# Characters of a library's error message to keep: some messages quote all damaged bytes.
_LONGEST = 300


_DEAD_LETTERS = Settings(format="jsonl", codec="gzip", content="record")


def settings_of(plan: Plan, entry: ObjectEntry) -> Settings:
    """The settings of an object: the plan's, or those of dead letters, which are the same in all archives."""
    return _DEAD_LETTERS if is_dead_letter(entry.key) else plan.settings


def is_readable(settings: Settings) -> bool:
    """Return True if the audit can read the records of objects with these settings, not only their bytes."""
    reader = reader_of(settings.format)
    return (reader.records if _has_offsets(settings) else reader.values) is not None


def _has_offsets(settings: Settings) -> bool:
    """Return True if the objects have the offsets of their records."""
    return settings.content != "value" or "offset" in settings.metadata


class Pieces(Segmented):
    """An object as a file.

    Pieces that are read in order update the checksum at once, also with other reads in between.
    """

    def __init__(self, size: int, fetch: Fetch, length: int = PIECE) -> None:
        super().__init__(size, length, -(-size // length))
        self._fetch, self._crc, self._seen = fetch, 0, 0

    def _fetched(self, number: int) -> bytes:
        piece = self._fetch(number * self._length, self._length)
        if not piece:
            raise EOFError("the object is truncated")
        if number == self._seen:
            self._crc, self._seen = zlib.crc32(piece, self._crc), number + 1
        return piece

    def checksum(self) -> str:
        """The checksum of all bytes, with zlib, not the writer's implementation. Fetches the pieces not yet counted."""
        while self._seen * self._length < self.size:
            self._segment(self._seen)
        return spelt(self._crc)


def read_through(
    entry: ObjectEntry, plan: Plan, fetch: Fetch, beside: SidecarOwner | None = None, secret: bytes | None = None
) -> list[str]:
    """The faults of an object whose size is right. Reads it once, completely.

    If the object is not readable, only its checksum is compared.

    :param beside: for a sidecar, its object; None: do not compare them.
    :param secret: the data key of the plan. Without it, of an encrypted object only the checksum is compared.
    :raises ArchiverError: `fetch` raised it: the store failed. Any other error is a fault of the object.
    """
    failures: list[ArchiverError] = []

    def noting(fetch: Fetch) -> Fetch:
        def asked(start: int, length: int) -> bytes:
            try:
                return fetch(start, length)
            except ArchiverError as failure:
                failures.append(failure)
                raise

        return asked

    pieces = Pieces(entry.bytes, noting(fetch))
    other = beside and SidecarOwner(beside.entry, noting(beside.fetch))

    def check() -> list[str]:
        whole = io.BufferedReader(pieces, 1 << 20)
        if plan.data_key is None:
            return list(_check(entry, plan, whole, other))
        return list(_check_sealed(entry, plan, whole, other, secret)) if secret else []

    damage = _or_damage(check)
    wrong = _or_damage(lambda: _other_checksum(pieces, entry))
    # A reader may have turned the store's error into another one.
    if failures:
        raise failures[0]
    return [*wrong, *(problem for problem in damage if problem not in wrong)]


def _check_sealed(
    entry: ObjectEntry, plan: Plan, whole: BinaryIO, beside: SidecarOwner | None, secret: bytes
) -> Iterator[str]:
    """The faults of an encrypted object, and of its content."""

    def fetch(start: int, length: int) -> bytes:
        whole.seek(start)
        return whole.read(length)

    content = Unsealed(fetch, entry.bytes, entry.key, secret)
    if beside:
        other = Unsealed(beside.fetch, beside.entry.bytes, beside.entry.key, secret)
        beside = SidecarOwner(beside.entry.model_copy(update={"bytes": other.size}), other.range)
    yield from _check(entry, plan, io.BufferedReader(content, 1 << 20), beside)
    content.read_to_end()


def _or_damage(read: Callable[[], list[str]]) -> list[str]:
    """The faults that `read` returns; if it raises, the error as a fault."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as damage:  # noqa: BLE001 - of damaged bytes libraries raise anything, a panic of Rust too
        text = " ".join(error_in_words(damage).encode(errors="backslashreplace").decode().split())
        return [f"it cannot be read: {text[:_LONGEST]}"]


def _other_checksum(pieces: Pieces, entry: ObjectEntry) -> list[str]:
    checksum = pieces.checksum()
    return [] if checksum == entry.checksum else [f"its bytes have the checksum {checksum}"]


def _check(entry: ObjectEntry, plan: Plan, file: BinaryIO, beside: SidecarOwner | None) -> Iterator[str]:
    settings = settings_of(plan, entry)
    reader = reader_of(settings.format)
    if entry.sidecar_of is not None:
        if beside and reader.sidecar:
            yield from reader.sidecar(file, settings, beside)
    elif not _has_offsets(settings) and reader.values:
        if (rows := reader.values(file, settings)) not in (None, entry.rows):
            yield f"it has {rows} rows"
    elif _has_offsets(settings) and reader.records:
        chunk = plan.chunk_of(TopicPartition(entry.topic, entry.partition), entry.chunk_start)
        # The times that other layouts file by are not in the objects.
        timed = is_dead_letter(entry.key) or settings.time.source == "record"
        yield from check_records(entry, chunk.range if chunk else Range(0, 0), reader.records(file, settings), timed)


def check_records(
    entry: ObjectEntry, chunk: Range, records: Iterator[RecordCoordinates], timed: bool = True
) -> Iterator[str]:
    """The faults of an object's records: each kind once, with the first offset.

    :param chunk: the offsets of the object's chunk.
    :param records: what they do not have is not checked.
    :param timed: whether the entry's hours are those of Kafka's times.
    """
    faults: dict[str, str] = {}
    first = last = low = high = None
    rows, repeated, hours = 0, 0, frozenset(entry.hours)
    counted: Counter[int | None] = Counter()
    for record in records:
        rows += 1
        place = f"offset {record.offset}"
        again = record.offset == last
        repeated += again
        # A record may have several rows only if the entry has `records`.
        if last is not None and (record.offset < last or (again and entry.records is None)):
            faults.setdefault("order", f"{place} follows {last}")
        if record.offset not in chunk:
            faults.setdefault("chunk", f"{place} is outside its chunk {chunk}")
        if record.topic not in (None, entry.topic) or record.partition not in (None, entry.partition):
            faults.setdefault("partition", f"{place} is of {record.topic}[{record.partition}]")
        first = record.offset if first is None else first
        last = record.offset
        if (time := record.timestamp) is not None:
            counted[hour_of(time)] += 1
            if timed and hour_of(time) not in hours:
                faults.setdefault("hour", f"{place} has the timestamp {time}, which is of another hour")
            low = time if low is None else min(low, time)
            high = time if high is None else max(high, time)
    yield from faults.values()
    counts = {hour: entry.rows_in(hour) for hour in hours}
    if timed and entry.rows_by_hour and counted and not faults and counts != dict(counted):
        yield f"its rows are of the hours {dict(counted)}"
    if entry.records is not None and rows - repeated != entry.records:
        yield f"its rows are of {rows - repeated} records"
    expected = (entry.rows, entry.first_offset, entry.last_offset, entry.min_timestamp, entry.max_timestamp)
    for what, is_, should in zip(
        ("rows", "as first offset", "as last offset", "as smallest timestamp", "as largest timestamp"),
        (rows, first, last, low, high),
        expected,
        strict=True,
    ):
        # With rows only a timestamp can be None: the object has none.
        if is_ != should and not (rows and is_ is None):
            yield f"it has {is_} {what}"

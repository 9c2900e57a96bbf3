"""One object's bytes and records against its entry in the manifest."""

import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from kafka_archiver.audit.readers import DAMAGE, READERS, Seen, lines, records
from kafka_archiver.intervals import hour_of
from kafka_archiver.keys import is_dead_letter
from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import Range, TopicPartition

# Asks the store for some bytes of an object, by their start and number.
Fetch = Callable[[int, int], bytes]


class Encoding(NamedTuple):
    """How an object's bytes are to be read."""

    format: str
    codec: str
    content: str


def encoding_of(plan: Plan, entry: ObjectEntry) -> Encoding:
    """As the plan says; dead letters are the same in all archives."""
    settings = plan.settings
    if is_dead_letter(entry.key):
        return Encoding("jsonl", "gzip", "record")
    return Encoding(settings.format, settings.codec, settings.content)


class Parts(io.RawIOBase):
    """An object as a file that is fetched part by part, one of them in memory; it keeps the MD5 of each."""

    def __init__(self, size: int, part_bytes: int, fetch: Fetch) -> None:
        self._size, self._part_bytes, self._fetch = size, part_bytes, fetch
        self._md5: dict[int, bytes] = {}
        self._number, self._part, self._at = -1, b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        number, start = divmod(self._at, self._part_bytes)
        self._load(number)
        piece = self._part[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _load(self, number: int) -> None:
        if number != self._number:
            self._part = self._fetch(number * self._part_bytes, self._part_bytes)
            self._number = number
            self._md5.setdefault(number, hashlib.md5(self._part, usedforsecurity=False).digest())
            if not self._part:
                raise EOFError("the object ends too early")

    def checksum(self) -> str:
        """The MD5 of the parts' MD5s, a dash and their number. Fetches what nobody has read."""
        count = -(-self._size // self._part_bytes)
        for number in range(count):
            if number not in self._md5:
                self._load(number)
        digest = hashlib.md5(b"".join(self._md5[n] for n in range(count)), usedforsecurity=False)
        return f"{digest.hexdigest()}-{count}"


def read_through(entry: ObjectEntry, plan: Plan, fetch: Fetch) -> list[str]:
    """What is wrong with an object that has its size; read once, from the first byte to the last."""
    parts = Parts(entry.bytes, plan.settings.part_bytes, fetch)
    found = []
    try:
        found = list(_check(entry, plan, io.BufferedReader(parts, 1 << 20)))
    except DAMAGE as damage:
        found = [f"it cannot be read: {type(damage).__name__}: {damage}"]
    try:
        checksum = parts.checksum()
    except DAMAGE as damage:
        return [f"it cannot be read: {type(damage).__name__}: {damage}"]
    return found if checksum == entry.checksum else [f"its bytes have the checksum {checksum}", *found]


def _check(entry: ObjectEntry, plan: Plan, file: BinaryIO) -> Iterator[str]:
    encoding = encoding_of(plan, entry)
    if encoding.format not in READERS:
        return
    if encoding.content == "value":
        if (rows := lines(file, encoding.codec)) != entry.rows:
            yield f"it has {rows} rows"
        return
    name = TopicPartition(entry.topic, entry.partition)
    chunk = plan.chunk_of(name, entry.chunk_start)
    yield from check_records(entry, chunk.range if chunk else Range(0, 0), records(file, *encoding[:2]))


def check_records(entry: ObjectEntry, chunk: Range, found: Iterator[Seen]) -> Iterator[str]:
    """What is wrong with an object's records, each kind of fault once with the first offset that has it.

    :param chunk: the offsets of the chunk whose object it is.
    """
    faults: dict[str, str] = {}
    first = last = low = high = None
    rows, hour = 0, entry.hour
    for record in found:
        rows += 1
        place = f"offset {record.offset}"
        if last is not None and record.offset <= last:
            faults.setdefault("order", f"{place} follows {last}")
        if record.offset not in chunk:
            faults.setdefault("chunk", f"{place} is not of its chunk {chunk}")
        if (record.topic, record.partition) != (entry.topic, entry.partition):
            faults.setdefault("partition", f"{place} is of {record.topic}[{record.partition}]")
        if hour_of(record.timestamp) != hour:
            faults.setdefault("hour", f"{place} has the timestamp {record.timestamp}, which is of another hour")
        first = record.offset if first is None else first
        last = record.offset
        low = record.timestamp if low is None else min(low, record.timestamp)
        high = record.timestamp if high is None else max(high, record.timestamp)
    yield from faults.values()
    expected = (entry.rows, entry.first_offset, entry.last_offset, entry.min_timestamp, entry.max_timestamp)
    for what, is_, should in zip(
        ("rows", "as first offset", "as last offset", "as smallest timestamp", "as largest timestamp"),
        (rows, first, last, low, high),
        expected,
        strict=True,
    ):
        if is_ != should:
            yield f"it has {is_} {what}"

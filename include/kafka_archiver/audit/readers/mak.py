"""MAK files, read with `struct` by the byte tables of docs/FORMAT.md. Independent of `formats/mak`."""

import io
import json
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from kafka_archiver.audit.readers.base import RecordCoordinates
from kafka_archiver.audit.readers.streams import READ, plain
from kafka_archiver.model.settings import Settings


class MakRecord(NamedTuple):
    """A record of a MAK file; the last three fields are None in version 1."""

    key: bytes | None
    value: bytes | None
    offset: int
    timestamp: int | None = None
    timestamp_type: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] | None = None


class MakFile:
    """A MAK file without compression, read once from its beginning.

    :ivar version, last_offset, size, header: what its header says; `header` is the JSON.
    :raises ValueError: it is not a MAK file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._at = file, 0
        self.size = 3 + 3 * 8
        magic = self._take(3)
        if magic not in (b"MAK", b"MA2"):
            raise ValueError(f"expected MAK or MA2 at the beginning, found {magic!r}")
        self.version = 1 if magic == b"MAK" else 2
        self.last_offset, self.size, length = struct.unpack(">QQQ", self._take(24))
        self.header: dict[str, Any] = json.loads(self._take(length))

    def records(self) -> Iterator[MakRecord]:
        """The records.

        :raises ValueError: the file does not end where its header says, or with another offset.
        """
        last = 0
        while self._at < self.size:
            record = self._record()
            last = record.offset
            yield record
        if self._file.read(1):
            raise ValueError(f"the file goes on after {self.size} bytes")
        if last != self.last_offset:
            raise ValueError(f"the last record has offset {last}, the header says {self.last_offset}")

    def _record(self) -> MakRecord:
        key, value = self._sized(), self._sized()
        [offset] = struct.unpack(">Q", self._take(8))
        if self.version == 1:
            return MakRecord(key, value, offset)
        timestamp, kind, count = struct.unpack(">qiI", self._take(16))
        headers = tuple(((self._sized() or b"").decode(), self._sized()) for _ in range(count))
        return MakRecord(key, value, offset, timestamp, kind, headers)

    def _sized(self) -> bytes | None:
        [length] = struct.unpack(">q", self._take(8))
        return None if length == -1 and self.version == 2 else self._take(length)

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= self.size - self._at:
            raise ValueError(f"at byte {self._at} of {self.size}, a length of {length}")
        data = self._file.read(length)
        if len(data) != length:
            raise ValueError(f"the file has {self._at + len(data)} bytes, its header says {self.size}")
        self._at += length
        return data


def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    """The records of an object."""
    stream: Any = plain(file, settings.codec)
    mak = MakFile(io.BufferedReader(stream, READ))
    place = mak.header["topic"], mak.header["partition"]
    first = True
    for record in mak.records():
        if first and record.offset != mak.header["startoffset"]:
            raise ValueError(f"the first record has offset {record.offset}, the header {mak.header['startoffset']}")
        first = False
        yield RecordCoordinates(*place, record.offset, record.timestamp)

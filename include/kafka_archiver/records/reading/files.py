"""The bytes of an object as a file: read piece by piece, or range by range."""

import io
from collections.abc import Callable
from mmap import mmap
from typing import Any

from kafka_archiver.messages.errors import ArchiverError, IntegrityError
from kafka_archiver.store.base import Store
from kafka_archiver.values.checksum import crc32, spelt
from kafka_archiver.values.segmented import SeekableFile, Segmented

# Reads bytes of an object: (start, length).
Fetch = Callable[[int, int], bytes]
PIECE = 8 << 20


def fetch_from(store: Store, key: str, gone: Callable[[str], ArchiverError]) -> Fetch:
    """Return the function that reads ranges of a stored object; one request each.

    :param gone: makes the error for an object that does not exist, of its URL.
    """

    def fetch(start: int, length: int) -> bytes:
        data = store.read(key, start, length)
        if data is None:
            raise gone(f"{store.url}/{key}")
        return data

    return fetch


class ObjectCopy:
    """An object's bytes in memory, or in a mapped file. Called, it is a `Fetch`."""

    def __init__(self, data: bytes | mmap) -> None:
        self.data = data

    def __call__(self, start: int, length: int) -> bytes:
        return self.data[start : start + max(0, length)]


class ObjectFile(Segmented):
    """An object as a file. Pieces that are read in order count for the checksum at once, also with reads in between.

    :param piece: bytes that are fetched at once.
    :raises IntegrityError: when reading: the object is shorter than `size`.
    """

    def __init__(self, name: str, fetch: Fetch, size: int, piece: int = PIECE) -> None:
        super().__init__(size, piece, -(-size // piece))
        self._name, self._fetch, self._crc, self._counted = name, fetch, 0, 0

    def checksum(self) -> str:
        """Return the checksum of all bytes. Fetches the pieces that are not counted yet."""
        while self._counted < self._count:
            self._segment(self._counted)
        return spelt(self._crc)

    def _fetched(self, number: int) -> bytes:
        start = number * self._length
        length = min(self._length, self.size - start)
        piece = self._fetch(start, length)
        if len(piece) < length:
            raise IntegrityError(f"{self._name} is truncated: expected {self.size} bytes, found {start + len(piece)}")
        if number == self._counted:
            self._crc, self._counted = crc32(piece, self._crc), number + 1
        return piece


class RangeFile(SeekableFile):
    """A file each of whose reads is one range of an object."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch, self.size, self._at = fetch, size, 0

    def readinto(self, buffer: Any) -> int:
        length = max(0, min(len(buffer), self.size - self._at))
        data = self._fetch(self._at, length) if length else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class LimitedReads(io.RawIOBase):
    """A file that gives at most so many bytes a read: decoders make one batch of each read."""

    def __init__(self, file: io.RawIOBase, most: int) -> None:
        self._file, self._most = file, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most `most` bytes."""
        return self._file.read(self._most if size < 0 else min(size, self._most)) or b""


class CopyFile(io.BufferedReader):
    """A copy as a file. Who can decode `data` in place need not read it."""

    def __init__(self, copy: ObjectCopy) -> None:
        super().__init__(RangeFile(copy, len(copy.data)), PIECE >> 3)
        self.data = copy.data

"""Files that are read in parts: they are fetched, or come, one at a time."""

import io
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any


class SeekableFile(io.RawIOBase):
    """A file that is read at any place. A subclass sets `size`, its bytes, and `_at`, the place of the next read."""

    size: int
    _at: int

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        return self._at


class Segmented(SeekableFile):
    """A file to read in order or at any place. One segment is in memory.

    :param size: bytes of the file.
    :param length: bytes of a segment; the last one may be shorter, or empty.
    :param count: the segments. Who reads to the end has fetched the last one, also if it is empty.
    """

    def __init__(self, size: int, length: int, count: int) -> None:
        self.size, self._length, self._count = size, length, count
        self._at, self._number, self._held = 0, -1, b""

    @abstractmethod
    def _fetched(self, number: int) -> bytes:
        """The bytes of a segment, the first is 0."""

    def _segment(self, number: int) -> bytes:
        if number != self._number:
            self._held, self._number = self._fetched(number), number
        return self._held

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self._at, self._length)
        if number >= self._count:
            return 0
        piece = self._segment(number)[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def range(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start`, fewer at the end."""
        self.seek(start)
        data = bytearray()
        while len(data) < length and (piece := self.read(length - len(data))):
            data += piece
        return bytes(data)


class PiecesFile(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._piece = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._piece = memoryview(piece)
        count = min(len(buffer), len(self._piece))
        buffer[:count], self._piece = self._piece[:count], self._piece[count:]
        return count

"""Bytes that wait until an object's beginning is known: in memory, or in a file without a name on disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.formats.shared.buffered_rows import nameless, write_all
from kafka_archiver.values.checksum import crc32

_PIECE = 1 << 20


class BufferedBytes:
    """Bytes in order. `memory`: how many are in memory. Those that come back from disk are checked by their CRC-32."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._file: BinaryIO | None = None
        self._size = self._crc = 0
        self.memory = 0

    def add(self, data: Buffer) -> None:
        """Keep a copy of these bytes."""
        # A view would keep all that it was cut from.
        self._pieces.append(bytes(data))
        self.memory += len(data)

    def spill(self, directory: Path) -> int:
        """Move all bytes from memory to disk; return how many.

        :raises OSError: the disk is full; memory still holds the bytes.
        """
        if not self.memory:
            return 0
        self._file = self._file or nameless(directory)
        # Overwrites the bytes that a failed attempt may have left.
        self._file.seek(self._size)
        crc = self._crc
        for piece in self._pieces:
            crc = crc32(piece, crc)
            write_all(self._file, memoryview(piece))
        self._crc = crc
        freed, self._pieces, self.memory = self.memory, [], 0
        self._size += freed
        return freed

    def take(self) -> Iterator[bytes]:
        """All bytes in order, piece by piece. No `add` may follow.

        :raises IntegrityError: the disk returned other bytes than were written.
        """
        if self._file is not None:
            crc = 0
            with self._file as file:
                file.seek(0)
                # Not to the end of the file: a failed spill may have left more.
                for start in range(0, self._size, _PIECE):
                    piece = file.read(min(_PIECE, self._size - start))
                    crc = crc32(piece, crc)
                    yield piece
            if crc != self._crc:
                raise IntegrityError(f"{self._size} bytes were written to local disk, and other bytes were read")
        yield from self._pieces

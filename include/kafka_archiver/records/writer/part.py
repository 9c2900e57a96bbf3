"""The parts of an object: their sizes, and the buffer of one part in memory or in a temporary file."""

import os
import tempfile
from contextlib import suppress
from io import BufferedRandom

from kafka_archiver.messages.errors import IntegrityError, PermanentError
from kafka_archiver.records.writer.disk import LateDirectory, disk
from kafka_archiver.store.base import MAX_PART, MAX_PARTS, Body
from kafka_archiver.values.checksum import crc32

# Ordinary objects have fewer parts. A part of a very large object is at most 1/800 of the bytes sent before.
DOUBLE_AFTER = 800


def part_size(number: int, part_bytes: int) -> int:
    """The bytes of part `number` (from 1) of an object; the last part may be smaller.

    `part_bytes` at first, then twice as many after every 800 parts, up to S3's limit of 5 GiB. The 10,000 parts of S3
    hold 16 TiB if `part_bytes` is 8 MiB, and 13 TiB if it is the minimum.

    :raises PermanentError: S3 has no part of this number.
    """
    if number > MAX_PARTS:
        raise PermanentError(
            f"an object needs more than {MAX_PARTS:,} parts (the first ones of {part_bytes} bytes), the limit of S3; "
            "set a smaller store.chunk_records for the next plan"
        )
    return min(part_bytes << (number - 1) // DOUBLE_AFTER, MAX_PART)


class PartBuffer:
    """The bytes of one part, and their CRC-32.

    :param memory: the most bytes in memory. A larger part is collected in a temporary file and sent from there.
    """

    def __init__(self, directory: LateDirectory, memory: int) -> None:
        self.size = 0
        self.crc32 = 0
        self.memory = 0
        """The number of bytes in memory."""
        self._directory = directory
        self._most = memory
        # Joined once, at the end: a growing buffer would cost more CPU.
        self._memory: list[memoryview] = []
        self._file: BufferedRandom | None = None

    def add(self, data: memoryview) -> None:
        """Append bytes. The caller must not change them later."""
        self._memory.append(data)
        self.memory += len(data)
        self.size += len(data)
        # Here the bytes are still in the CPU's cache, and local disk cannot have damaged them yet.
        self.crc32 = crc32(data, self.crc32)
        if self.memory > self._most:
            self.spill()

    def spill(self) -> None:
        """Move the bytes in memory to the end of a temporary file."""
        with disk(self._directory.path):
            if self._file is None:
                # The file never has a name, so even a killed process leaves nothing behind.
                self._file = tempfile.TemporaryFile(dir=self._directory.path)  # noqa: SIM115
            self._file.writelines(self._memory)
        self._memory, self.memory = [], 0

    def take(self) -> Body:
        """All bytes, or the file if they exceed the memory limit. No `add` may follow."""
        if self._file is None:
            memory, self._memory, self.memory = self._memory, [], 0
            return b"".join(memory)
        self.spill()
        with disk(self._directory.path):
            stored = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            if stored != self.size:
                raise IntegrityError(f"{self.size} bytes of a part were written to local disk, but found {stored}")
            return self._file.read() if self.size <= self._most else self._file

    def close(self) -> None:
        self._memory, self.memory = [], 0
        if self._file is not None:
            # close() writes again what a full disk refused before; `disk` has reported that error already.
            with suppress(OSError):
                self._file.close()

"""The parts of an object: how large each is, and the one that is being filled: in memory, or in a temporary file."""

import os
import tempfile
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path

from kafka_archiver.checksum import crc32
from kafka_archiver.errors import IntegrityError, PermanentError
from kafka_archiver.store.base import MAX_PART, MAX_PARTS, Body
from kafka_archiver.writer.disk import disk

# Ordinary objects never come so far, and the parts of very large ones are no more than an 800th of what is sent.
DOUBLE_AFTER = 800


def part_size(number: int, part_bytes: int) -> int:
    """How many bytes part `number` (from 1) of an object has, unless it is the last one.

    `part_bytes` at first, and twice as many after each 800 parts, up to S3's 5 GiB: the 10,000 that S3 takes hold
    16 TiB with parts of 8 MiB, and 13 TiB with the smallest.

    :raises PermanentError: S3 takes no such part.
    """
    if number > MAX_PARTS:
        raise PermanentError(
            f"an object needs more than {MAX_PARTS:,} parts (the first ones of {part_bytes} bytes), and no S3 takes "
            "more: give the archive a smaller store.chunk_records, for the next plan"
        )
    return min(part_bytes << (number - 1) // DOUBLE_AFTER, MAX_PART)


class PartBuffer:
    """Bytes on their way to one part, and their CRC-32.

    :param memory: how many of its bytes may be in memory. A part that becomes larger waits in its file, and is sent
        from there.
    """

    def __init__(self, directory: Path, memory: int) -> None:
        self.size = 0
        self.crc32 = 0
        self.held = 0
        """The bytes of it that are in memory."""
        self._directory = directory
        self._most = memory
        # Joined once, at the end: to let one buffer grow costs more than all that is done with it.
        self._memory: list[memoryview] = []
        self._file: BufferedRandom | None = None

    def add(self, data: memoryview) -> None:
        """Append bytes, which nobody may change later."""
        self._memory.append(data)
        self.held += len(data)
        self.size += len(data)
        # Here, where they are still in the processor's cache, and before they can be damaged on local disk.
        self.crc32 = crc32(data, self.crc32)
        if self.held > self._most:
            self.spill()

    def spill(self) -> None:
        """Move what is in memory to the end of a temporary file."""
        with disk(self._directory):
            if self._file is None:
                # Without a name from the first moment on, so that not even a killed process leaves it behind.
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115
            self._file.writelines(self._memory)
        self._memory, self.held = [], 0

    def take(self) -> Body:
        """All its bytes: themselves, or the file if they are more than may be in memory. Nothing may be added then."""
        if self._file is None:
            memory, self._memory, self.held = self._memory, [], 0
            return b"".join(memory)
        self.spill()
        with disk(self._directory):
            stored = self._file.seek(0, os.SEEK_END)
            self._file.seek(0)
            if stored != self.size:
                raise IntegrityError(f"{self.size} bytes of a part were put on local disk, {stored} are there")
            return self._file.read() if self.size <= self._most else self._file

    def close(self) -> None:
        """Let go of its memory and its file."""
        self._memory, self.held = [], 0
        if self._file is not None:
            # What it could not write to a full disk it tries again; that has been said already.
            with suppress(OSError):
                self._file.close()

"""Copies of objects, in memory or in one temporary file. Each is compared with its checksum before anybody reads it."""

import mmap
import tempfile
from contextlib import ExitStack
from typing import IO, Self

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.reading.files import PIECE, Fetch, ObjectCopy
from kafka_archiver.records.reading.opener import Promised
from kafka_archiver.values.checksum import crc32, spelt

# Bytes of copies in memory, as many as a task that archives buffers by default. A file costs two more copies of each
# byte, in the kernel, and its first pages as much again.
MOST_IN_MEMORY = 128 << 20


class Copies:
    """Copies in memory up to `MOST_IN_MEMORY`; others in a file without a name, which disappears with the process."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._files = ExitStack()
        self._end = self._in_memory = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def clear(self) -> None:
        """Forget the copies, which nobody may read any more: the next ones overwrite those in the file.

        The kernel has the file's pages already; those of a new file cost more than the copying itself.
        """
        self._end = self._in_memory = 0

    def add(self, item: Promised, fetch: Fetch) -> Fetch:
        """Copy an object; return what reads ranges of the copy.

        :raises IntegrityError: it does not have the size and the checksum of the manifest.
        """
        if self._in_memory + item.bytes > MOST_IN_MEMORY:
            return self._in_file(item, fetch)
        data = fetch(0, item.bytes) if item.bytes else b""
        _compare(item, len(data), crc32(data))
        self._in_memory += item.bytes
        return ObjectCopy(data)

    def _in_file(self, item: Promised, fetch: Fetch) -> Fetch:
        file = self._file = self._file or self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        # A mapping begins at a page.
        self._end += -self._end % mmap.ALLOCATIONGRANULARITY
        file.seek(self._end)
        begin, crc = self._end, 0
        for start in range(0, item.bytes, PIECE):
            data = fetch(start, min(PIECE, item.bytes - start))
            crc = crc32(data, crc)
            file.write(data)
            self._end += len(data)
        size = self._end - begin
        _compare(item, size, crc)
        file.flush()
        return ObjectCopy(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, offset=begin))


def _compare(item: Promised, size: int, crc: int) -> None:
    if (size, spelt(crc)) != (item.bytes, item.checksum):
        raise IntegrityError(
            f"{item.key}: expected {item.bytes} bytes with checksum {item.checksum}, found {size} with "
            f"{spelt(crc)}: the object is damaged, or another one"
        )

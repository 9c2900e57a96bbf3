"""Copies of objects in one temporary file. Each is compared with its checksum before anybody decodes it."""

import os
import tempfile
from typing import Self

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.reading.files import PIECE, Fetch
from kafka_archiver.records.reading.opener import Promised
from kafka_archiver.values.checksum import crc32, spelt


class Copies:
    """A temporary file without a name, which disappears with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def clear(self) -> None:
        """Forget the copies, which nobody may read any more: the next ones overwrite them.

        The kernel has the file's pages already; those of a new file cost more than the copying itself.
        """
        self._file.seek(0)
        self._end = 0

    def add(self, item: Promised, fetch: Fetch) -> Fetch:
        """Copy an object; return what reads ranges of the copy.

        :raises IntegrityError: it does not have the size and the checksum of the manifest.
        """
        begin, crc = self._end, 0
        for start in range(0, item.bytes, PIECE):
            data = fetch(start, min(PIECE, item.bytes - start))
            crc = crc32(data, crc)
            self._file.write(data)
            self._end += len(data)
        size = self._end - begin
        if (size, spelt(crc)) != (item.bytes, item.checksum):
            raise IntegrityError(
                f"{item.key}: expected {item.bytes} bytes with checksum {item.checksum}, found {size} with "
                f"{spelt(crc)}: the object is damaged, or another one"
            )
        self._file.flush()
        return lambda start, length: os.pread(self._file.fileno(), max(0, min(length, size - start)), begin + start)

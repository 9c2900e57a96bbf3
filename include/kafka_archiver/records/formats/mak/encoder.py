"""MAK files: the records wait, compressed, until the header can be written; `spill` moves them to disk."""

import struct
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.mak import MakOptions
from kafka_archiver.records.formats.mak.records import MAGIC, encoded
from kafka_archiver.records.formats.shared.buffered_bytes import BufferedBytes
from kafka_archiver.records.formats.shared.compress import compressed
from kafka_archiver.records.formats.shared.records import normalised
from kafka_archiver.values.columns import column


class MakEncoder:
    """Encodes records. All bytes are ready at the end."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._version = MakOptions.model_validate(target.settings.options).version
        self._records = compressed(target.settings.codec)
        self._buffer = BufferedBytes()
        self._size = self._last = 0
        self._first: tuple[int, int] | None = None

    @property
    def pending(self) -> int:
        """Bytes of records in memory."""
        return self._records.pending + self._buffer.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records. Nothing is ready yet."""
        if batch.num_rows:
            offsets = column(batch, "offset")
            self._first = self._first or (int(offsets[0]), int(column(batch, "timestamp")[0]))
            self._last = int(offsets[-1])
            records = encoded(normalised(batch), self._version)
            self._size += len(records)
            self._hold(self._records.write(records))
        return []

    def spill(self, directory: Path) -> int:
        """Move the records to disk."""
        return self._buffer.spill(directory)

    def finish(self) -> Iterator[Buffer]:
        """Return all bytes, piece by piece."""
        header = compressed(self._target.settings.codec)
        yield from header.write(self._header())
        yield from header.finish()
        if self._size:
            self._hold(self._records.finish())
        yield from self._buffer.take()

    def _hold(self, pieces: list[Buffer]) -> None:
        for piece in pieces:
            self._buffer.add(piece)

    def _header(self) -> bytes:
        offset, timestamp = self._first or (0, 0)
        place = {"topic": self._target.topic, "partition": self._target.partition}
        text = orjson.dumps({**place, "startoffset": offset, "starttime": max(timestamp, 0) / 1000})
        size = len(MAGIC[self._version]) + 3 * 8 + len(text) + self._size
        return MAGIC[self._version] + struct.pack(">QQQ", self._last, size, len(text)) + text

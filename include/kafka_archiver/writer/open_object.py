"""One object that is being written: takes records, sends full parts."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_archiver.columns import column
from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import Buffer, Encoder
from kafka_archiver.intervals import LAST_MS
from kafka_archiver.plan import Chunk
from kafka_archiver.writer.part import PartBuffer, part_size
from kafka_archiver.writer.result import WrittenObject
from kafka_archiver.writer.upload import Upload


class OpenObject:
    """Encodes records of one path, in offset order, and sends every part as soon as it is full."""

    def __init__(self, path: str, encoder: Encoder, upload: Upload, part_bytes: int, directory: Path) -> None:
        self.encoder = encoder
        self.buffer = PartBuffer(directory, part_bytes)
        self._number = 1
        self._path = path
        self._upload = upload
        self._part_bytes = part_bytes
        self._directory = directory
        self._bytes = 0
        self.rows = self._records = 0
        self._offsets = (-1, -1)
        self._times = (LAST_MS, -1)

    @property
    def held(self) -> int:
        """The bytes of memory that this object takes."""
        return self.encoder.pending + self.buffer.held

    def write(self, batch: pa.RecordBatch) -> None:
        """Take records."""
        offsets, times = column(batch, "offset"), column(batch, "timestamp")
        first = self._offsets[0] if self.rows else int(offsets[0])
        self._records += int(np.count_nonzero(offsets[1:] != offsets[:-1])) + bool(offsets[0] != self._offsets[1])
        low, high = int(times.min()), int(times.max())
        self._times = (min(low, self._times[0]), max(high, self._times[1])) if self.rows else (low, high)
        self._offsets = (first, int(offsets[-1]))
        self.rows += len(offsets)
        self._put(self.encoder.write(batch))

    def finish(self) -> None:
        """Send the last part."""
        self._put(self.encoder.finish())
        if self.buffer.size or not self._bytes:
            self._send()
        # An encoder's state is hundreds of kilobytes, and thousands of finished objects may wait for the last one.
        del self.encoder

    def _send(self) -> None:
        self._upload.send(self.buffer)
        self.buffer = PartBuffer(self._directory, self._part_bytes)
        self._number += 1

    def _put(self, buffers: Iterable[Buffer]) -> None:
        for buffer in buffers:
            data = memoryview(buffer).cast("B")
            whole = len(data)
            self._bytes += whole
            # Cut at fixed positions, so that every attempt sends the same parts and gets the same ETag.
            while len(data) >= (room := part_size(self._number, self._part_bytes) - self.buffer.size):
                self.buffer.add(data[:room])
                data = data[room:]
                self._send()
            # Copy the remainder: a slice would keep the bytes that were sent in memory.
            self.buffer.add(data if len(data) == whole else memoryview(bytes(data)))

    def written(self, chunk: Chunk) -> WrittenObject:
        """The object. Waits until all its parts are stored."""
        upload = self._upload.pending()
        if upload.size != self._bytes:
            raise IntegrityError(f"{upload.key}: {self._bytes} bytes were encoded, but {upload.size} bytes were sent")
        return WrittenObject(
            chunk=chunk,
            path=self._path,
            rows=self.rows,
            first_offset=self._offsets[0],
            last_offset=self._offsets[1],
            min_timestamp=self._times[0],
            max_timestamp=self._times[1],
            records=self._records,
            upload=upload,
        )

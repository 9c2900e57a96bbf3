"""MAK files: the records wait, compressed, until the header can be written; `spill` moves them to disk."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.mak import MakOptions
from kafka_archiver.records.formats.shared.buffered_rows import nameless, write_all
from kafka_archiver.records.formats.shared.compress import compressed
from kafka_archiver.records.formats.shared.records import normalised
from kafka_archiver.records.vectors import fixed, grouped, joined, text_of
from kafka_archiver.values.checksum import crc32
from kafka_archiver.values.columns import Int64s, column

# The first bytes of a file, by version.
MAGIC: Mapping[int, bytes] = {1: b"MAK", 2: b"MA2"}
# The length of a null, by version.
NULL: Mapping[int, int] = {1: 0, 2: -1}
_PIECE = 1 << 20


def encoded(batch: pa.RecordBatch, version: int) -> Buffer:
    """The records of a normalised batch."""
    columns = [
        *_sized(batch.column("key"), NULL[version]),
        *_sized(batch.column("value"), NULL[version]),
        _int64s(column(batch, "offset")),
    ]
    if version == 2:
        kinds = batch.column("timestamp_type").to_numpy()
        columns += [_int64s(column(batch, "timestamp")), fixed(kinds.astype(">i4")), *_headers(batch.column("headers"))]
    text, _ = text_of(joined(batch.num_rows, columns))
    return text.data


def _headers(lists: pa.Array) -> list[pa.LargeBinaryArray]:
    """The number of headers of each record, and its headers."""
    counts = lists.value_lengths().to_numpy().astype(np.int64)
    keys, values = lists.flatten().flatten()
    items = joined(len(keys), [*_sized(keys.cast(pa.large_binary()), 0), *_sized(values, NULL[2])])
    return [fixed(counts.astype(">u4")), grouped(items, counts)]


def _sized(values: pa.Array, null: int) -> list[pa.Array]:
    """Lengths and values."""
    return [_int64s(pc.binary_length(values).fill_null(null).to_numpy()), values]


def _int64s(numbers: Int64s) -> pa.LargeBinaryArray:
    return fixed(numbers.astype(">i8"))


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
        return self._records.pending + self._buffer.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        if batch.num_rows:
            offsets = column(batch, "offset")
            self._first = self._first or (int(offsets[0]), int(column(batch, "timestamp")[0]))
            self._last = int(offsets[-1])
            records = encoded(normalised(batch), self._version)
            self._size += len(records)
            self._hold(self._records.write(records))
        return []

    def spill(self, directory: Path) -> int:
        return self._buffer.spill(directory)

    def finish(self) -> Iterator[Buffer]:
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

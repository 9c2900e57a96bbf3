"""Lines in gzip members of limited size, and the index of the members.

The index is one JSON document, as kafka-connect-s3 writes it: `{"chunks": [...]}`. A chunk is a gzip member:

| field | what |
|---|---|
| byte_length_uncompressed | bytes of its lines |
| num_records | its lines |
| byte_length, byte_offset | its place in the object |
| first_record_offset | Kafka's offset of its first record |

Kafka's offsets may have gaps, so the record at an offset is in the last chunk that does not begin after it.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.block_gzip import BlockGzipOptions
from kafka_archiver.records.formats.jsonl.encoder import lines_of
from kafka_archiver.records.formats.shared.compress import compressed
from kafka_archiver.values.columns import Int64s, column

_NEWLINE = ord("\n")


class _Chunk(NamedTuple):
    """The fields of the index, in the peer's order."""

    byte_length_uncompressed: int
    num_records: int
    byte_length: int
    byte_offset: int
    first_record_offset: int


class _Member:
    """One gzip member."""

    def __init__(self, first: int) -> None:
        self.stream = compressed("gzip")
        self.first = first
        self.rows = self.raw = self.size = 0
        self.ready: list[Buffer] = []

    def add(self, lines: Buffer, rows: int) -> None:
        self.rows += rows
        self.raw += len(lines)
        self._take(self.stream.write(lines))

    def finish(self) -> None:
        self._take(self.stream.finish())

    def _take(self, pieces: list[Buffer]) -> None:
        self.size += sum(map(len, pieces))
        self.ready += pieces


class BlockEncoder:
    """Encodes records as lines. A member ends before the record with which it would exceed `block_bytes`."""

    sidecar_extension = ".index.json"

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lines = lines_of(target)
        self._most = block_bytes(target)
        self._member: _Member | None = None
        self._chunks: list[_Chunk] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes that the compressor does not have yet."""
        return self._member.stream.pending if self._member else 0

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records; return the bytes that are ready."""
        ready: list[Buffer] = []
        if batch.num_rows:
            offsets, row = column(batch, "offset"), 0
            for lines in self._lines(batch, self._target):
                # Each record is one line.
                ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + 1
                ready += self._take(memoryview(lines), ends, offsets[row : row + len(ends)])
                row += len(ends)
        return ready

    def spill(self, _directory: Path) -> int:
        """Spill nothing: this encoder holds no rows."""
        return 0

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
        # Without records there is one empty member, because no bytes at all are no gzip file.
        return self._close(self._member or _Member(-1))

    def sidecar(self) -> bytes:
        """The index."""
        return orjson.dumps({"chunks": [chunk._asdict() for chunk in self._chunks]})

    def _take(self, lines: memoryview, ends: Int64s, offsets: Int64s) -> list[Buffer]:
        ready: list[Buffer] = []
        row = start = 0
        while row < len(ends):
            member = self._member = self._member or _Member(int(offsets[row]))
            after = int(np.searchsorted(ends, start + self._most - member.raw, side="right"))
            if after <= row and member.rows:
                ready += self._close(member)
                continue
            after = max(after, row + 1)
            end = int(ends[after - 1])
            member.add(lines[start:end], after - row)
            row, start = after, end
        if self._member:
            ready += self._member.ready
            self._member.ready = []
        return ready

    def _close(self, member: _Member) -> list[Buffer]:
        member.finish()
        if member.rows:
            self._chunks.append(_Chunk(member.raw, member.rows, member.size, self._size, member.first))
        self._size += member.size
        self._member = None
        return member.ready


def block_bytes(target: Target) -> int:
    """The most bytes of a member before compression."""
    return BlockGzipOptions.model_validate(target.settings.options).block_bytes

"""Lines in compressed parts of limited size, each decompressed alone, and the index of the parts."""

import numpy as np
import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Encoder, Target
from kafka_archiver.records.formats.jsonl.objects import lines_of
from kafka_archiver.records.formats.shared.compress import compressed
from kafka_archiver.records.formats.shared.index import EXTENSION, Index, Part
from kafka_archiver.values.columns import Int64s, column

_NEWLINE = ord("\n")
# Of a format without the option `block_bytes`: what one lookup decompresses.
_MOST = 1 << 20


class _Block:
    """One gzip member, or one run of zstd frames."""

    def __init__(self, codec: str, first: int | None) -> None:
        self.stream = compressed(codec)
        self.first = first
        self.rows = self.raw = 0
        self.part = Part()
        self.ready: list[Buffer] = []

    def add(self, lines: Buffer, rows: int) -> None:
        self.rows += rows
        self.raw += len(lines)
        self._take(self.stream.write(lines))

    def finish(self) -> None:
        self._take(self.stream.finish())

    def _take(self, pieces: list[Buffer]) -> None:
        self.part.take(pieces)
        self.ready += pieces


class BlockEncoder(Encoder):
    """Encodes records as lines. A part ends before the record with which it would exceed `most_bytes`.

    :param checksums: whether the index has a checksum of each part.
    """

    sidecar_extension = EXTENSION

    def __init__(self, target: Target, checksums: bool) -> None:
        self._target, self._codec = target, target.settings.codec
        self._lines = lines_of(target)
        self._most = most_bytes(target)
        self._block: _Block | None = None
        self._index = Index(checksums=checksums)

    @property
    def pending(self) -> int:
        return self._block.stream.pending if self._block else 0

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        ready: list[Buffer] = []
        if batch.num_rows:
            offsets, row = column(batch, "offset") if "offset" in batch.schema.names else None, 0
            for lines in self._lines(batch, self._target):
                # Each record is one line.
                ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == _NEWLINE) + 1
                ready += self._take(memoryview(lines), ends, None if offsets is None else offsets[row:])
                row += len(ends)
        return ready

    def finish(self) -> list[Buffer]:
        # Without records there is one empty part: no bytes at all are no gzip file.
        return self._close(self._block or _Block(self._codec, None))

    def sidecar(self) -> bytes:
        return self._index.document()

    def _take(self, lines: memoryview, ends: Int64s, offsets: Int64s | None) -> list[Buffer]:
        ready: list[Buffer] = []
        row = start = 0
        while row < len(ends):
            block = self._block = self._block or _Block(self._codec, None if offsets is None else int(offsets[row]))
            after = int(np.searchsorted(ends, start + self._most - block.raw, side="right"))
            if after <= row and block.rows:
                ready += self._close(block)
                continue
            after = max(after, row + 1)
            end = int(ends[after - 1])
            block.add(lines[start:end], after - row)
            row, start = after, end
        if self._block:
            ready += self._block.ready
            self._block.ready = []
        return ready

    def _close(self, block: _Block) -> list[Buffer]:
        block.finish()
        self._index.add(block.part, block.raw, block.rows, block.first)
        self._block = None
        return block.ready


def most_bytes(target: Target) -> int:
    """Return the most bytes of a part before compression; a larger record has a part of its own."""
    return int(target.settings.options.get("block_bytes", _MOST))  # type: ignore[arg-type]

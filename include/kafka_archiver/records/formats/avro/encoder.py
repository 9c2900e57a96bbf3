"""Avro object container files: one datum a record, with the columns of the target's schema.

The bytes of its records decide where a block ends. `write` returns blocks as they end.
"""

import bz2
import hashlib
import zlib
from collections.abc import Callable

import numpy as np
import orjson
import pyarrow as pa
import zstandard

from kafka_archiver.records.formats.avro.datum import datums, long
from kafka_archiver.records.formats.avro.schema import schema_of, stored
from kafka_archiver.records.formats.base import Buffer, Encoder, Target
from kafka_archiver.records.formats.shared.compress import ZSTD
from kafka_archiver.records.formats.shared.cuts import cuts
from kafka_archiver.records.formats.shared.deflate import Deflate
from kafka_archiver.records.formats.shared.index import EXTENSION, Index, Part
from kafka_archiver.records.formats.shared.records import encoder_schema, normalised
from kafka_archiver.records.vectors import text_of
from kafka_archiver.values.columns import Int64s, column

_MAGIC = b"Obj\x01"
# Bytes before compression. Larger blocks do not compress better.
_BLOCK = 512 << 10


def _deflate(block: Buffer) -> bytes:
    stream = Deflate()
    return stream.compress(block) + stream.flush()


def _snappy(block: Buffer) -> bytes:
    """Snappy's raw format, then the CRC-32 of the block."""
    compressed: bytes = pa.compress(pa.py_buffer(block), "snappy", asbytes=True)
    return compressed + zlib.crc32(block).to_bytes(4, "big")


# By codec: its name in Avro, and the function that compresses a block.
_CODECS: dict[str, tuple[bytes, Callable[[Buffer], bytes]]] = {
    "none": (b"null", bytes),
    "gzip": (b"deflate", _deflate),
    "deflate": (b"deflate", _deflate),
    "zstd": (b"zstandard", lambda block: zstandard.ZstdCompressor(compression_params=ZSTD[1]).compress(block)),
    "snappy": (b"snappy", _snappy),
    "bzip2": (b"bzip2", bz2.compress),
}


class AvroEncoder(Encoder):
    """Encodes records as blocks. Each block is compressed alone."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._columns, self._stored = encoder_schema(target.schema), stored(target.schema)
        codec, self._compress = _CODECS[target.settings.codec]
        # The sync marker: the same in every attempt, different in every object.
        self._sync = hashlib.md5(target.key.encode(), usedforsecurity=False).digest()
        self._block = bytearray()
        self._rows = 0
        self._ready: list[Buffer] = [
            _MAGIC,
            long(2) + _bytes(b"avro.schema") + _bytes(orjson.dumps(schema_of(self._stored))),
            _bytes(b"avro.codec") + _bytes(codec) + long(0),
            self._sync,
        ]

    @property
    def pending(self) -> int:
        return len(self._block)

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        if batch.num_rows:
            target = self._target
            records = datums(normalised(batch, self._columns), self._stored, target.topic, target.partition)
            text, ends = text_of(records)
            encoded, ends, start = text.data, ends - ends[0], 0
            for end in cuts(np.diff(ends), len(self._block), _BLOCK):
                self._take(encoded[ends[start] : ends[end]], end - start)
                self._close_block()
                start = end
            self._take(encoded[ends[start] : ends[-1]], len(records) - start)
        ready, self._ready = self._ready, []
        return ready

    def finish(self) -> list[Buffer]:
        if self._rows:
            self._close_block()
        return self._ready

    def _take(self, encoded: Buffer, rows: int) -> None:
        self._block += encoded
        self._rows += rows

    def _close_block(self) -> None:
        block = self._compress(self._block)
        self._add([long(self._rows) + long(len(block)), block, self._sync], len(self._block), self._rows)
        self._block, self._rows = bytearray(), 0

    def _add(self, block: list[Buffer], _uncompressed: int, _rows: int) -> None:
        """Give the bytes of a block."""
        self._ready += block


class IndexedAvroEncoder(AvroEncoder):
    """The same bytes, and an index of the blocks."""

    sidecar_extension = EXTENSION

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._index = Index(sum(map(len, self._ready)))
        # Rows of ended blocks, of records that came before the last batch, and the offset of the open block's first.
        self._closed = self._before = 0
        self._first: int | None = None
        self._offsets: Int64s | None = None

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        self._offsets = column(batch, "offset") if "offset" in batch.schema.names else None
        if self._before == self._closed:
            self._first = self._offset_at(self._before)
        ready = super().write(batch)
        self._before += batch.num_rows
        return ready

    def sidecar(self) -> bytes:
        return self._index.document()

    def _add(self, block: list[Buffer], uncompressed: int, rows: int) -> None:
        super()._add(block, uncompressed, rows)
        part = Part()
        part.take(block)
        self._index.add(part, uncompressed, rows, self._first)
        self._closed += rows
        self._first = self._offset_at(self._closed)

    def _offset_at(self, row: int) -> int | None:
        """Return the offset of a row of the present batch; None: it is in a later one, or the batch has none."""
        at = row - self._before
        return int(self._offsets[at]) if self._offsets is not None and 0 <= at < len(self._offsets) else None


def _bytes(value: bytes) -> bytes:
    return long(len(value)) + value

"""Digests of records that do not depend on how the records are cut into batches.

Each column is a stream of bytes: lengths (-1 for null) and contents. A CRC-32 of each stream can go on where another
process has stopped; a SHA-256 of each cannot, and is stronger.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.values.checksum import crc32

Bytes = bytes | memoryview
# Streams of a record: timestamp, key, value, headers.
_STREAMS = 10


def streams(batch: pa.RecordBatch) -> Iterator[Bytes]:
    """Yield the bytes of each stream.

    :param batch: `timestamp`, and `key`, `value` and `headers` in their large variants (`records.COLUMNS`).
    """
    yield _numbers(batch.column("timestamp")).tobytes()
    yield from _binary(batch.column("key"))
    yield from _binary(batch.column("value"))
    headers = batch.column("headers")
    yield _numbers(pc.list_value_length(headers)).tobytes()
    pairs = headers.flatten()
    yield from _binary(pc.struct_field(pairs, 0).cast(pa.large_binary()))
    yield from _binary(pc.struct_field(pairs, 1))


def _binary(column: pa.Array) -> Iterator[Bytes]:
    lengths = pc.fill_null(pc.binary_length(column), -1)
    yield _numbers(lengths).tobytes()
    if column.null_count:
        # A null may have bytes.
        column = pc.fill_null(column, b"")
    _, ends, content = column.buffers()
    if content is None or not len(column):
        yield b""
        return
    offsets = np.frombuffer(ends, np.int64, len(column) + 1, 8 * column.offset)
    yield memoryview(content)[int(offsets[0]) : int(offsets[-1])]


def payload_bytes(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the bytes of each record: key, value, and the names and values of headers."""
    sums = np.zeros(batch.num_rows, np.int64)
    for name in ("key", "value"):
        sums += _numbers(pc.fill_null(pc.binary_length(batch.column(name)), 0))
    headers = batch.column("headers")
    pairs = headers.flatten()
    if len(pairs):
        keys = _numbers(pc.binary_length(pc.struct_field(pairs, 0).cast(pa.large_binary())))
        values = _numbers(pc.fill_null(pc.binary_length(pc.struct_field(pairs, 1)), 0))
        ends = np.cumsum(_numbers(pc.list_value_length(headers)))
        total = np.concatenate([[0], np.cumsum(keys + values)])
        sums += total[ends] - total[np.concatenate([[0], ends[:-1]])]
    return sums


def _numbers(numbers: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return integers without nulls. Not by to_numpy(), which imports pandas."""
    kind = np.dtype(np.int64 if numbers.type.bit_width == 64 else np.int32)
    content = numbers.buffers()[1]
    if content is None:
        return np.zeros(0, np.int64)
    return np.frombuffer(content, kind, len(numbers), kind.itemsize * numbers.offset).astype(np.int64, copy=False)


class RunningDigest:
    """CRC-32s of the streams. `text`: of the records so far; empty: of none."""

    def __init__(self, text: str = "") -> None:
        parts = text.split("-") if text else ["0"] * _STREAMS
        if len(parts) != _STREAMS:
            raise ValueError(f"expected {_STREAMS} numbers in hex, found {text!r}")
        self._sums = [int(part, 16) for part in parts]

    def add(self, batch: pa.RecordBatch) -> Self:
        self._sums = [crc32(data, before) for data, before in zip(streams(batch), self._sums, strict=True)]
        return self

    @property
    def text(self) -> str:
        """The digest as documents have it."""
        return "-".join(f"{number:08x}" for number in self._sums)


class StrongDigest:
    """A SHA-256 of the streams."""

    def __init__(self) -> None:
        self._hashes = [hashlib.sha256() for _ in range(_STREAMS)]

    def add(self, batch: pa.RecordBatch) -> None:
        for data, sha in zip(streams(batch), self._hashes, strict=True):
            sha.update(data)

    @property
    def text(self) -> str:
        """The digest in hex."""
        return hashlib.sha256(b"".join(sha.digest() for sha in self._hashes)).hexdigest()

"""Reads MAK files of both versions."""

import io
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError, error_in_words
from kafka_archiver.records.formats.base import PLACE, RECORD, Target
from kafka_archiver.records.formats.mak.encoder import MAGIC
from kafka_archiver.records.formats.shared.decompress import decompressed
from kafka_archiver.values.segmented import PiecesFile

# Bytes of records a batch, about.
_BATCH = 1 << 20
# Kafka's topics have at most 249 characters.
_LONGEST_HEADER = 1 << 16
_Row = dict[str, Any]


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of `RECORD`, each of about 1 MiB of records.

    :raises IntegrityError: `source` is not a complete MAK file.
    """
    try:
        yield from _batches(_File(decompressed(target.settings.codec, source, several=True)))
    except (struct.error, ValueError, LookupError, TypeError, OverflowError, pa.ArrowException) as error:
        raise IntegrityError(f"{target.key} is not a complete MAK file: {error_in_words(error)}") from error


class _File:
    """A MAK file, read from its beginning to its end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._file = io.BufferedReader(PiecesFile(pieces), _BATCH)
        self.at = 0
        # Until the header is read.
        self.size = _LONGEST_HEADER

    def take(self, count: int) -> bytes:
        # Before reading: a damaged length may be larger than any memory.
        if not 0 <= count <= self.size - self.at:
            raise ValueError(f"expected at most {self.size - self.at} bytes at {self.at}, found {count}")
        block = self._file.read(count)
        self.at += len(block)
        if len(block) < count:
            raise ValueError(f"the file is truncated: expected {self.size} bytes, found {self.at}")
        return block

    def numbers(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def optional(self, null: int | None) -> bytes | None:
        """The next length and its bytes.

        :param null: the length of a null; None: no length is.
        """
        [count] = self.numbers(">q")
        return None if count == null else self.take(count)

    def end(self) -> None:
        """Require that nothing follows."""
        if self._file.read(1):
            raise ValueError(f"expected {self.size} bytes, found more")


def _batches(file: _File) -> Iterator[pa.RecordBatch]:
    version = {magic: number for number, magic in MAGIC.items()}[file.take(3)]
    last, size, length = file.numbers(">QQQ")
    header = orjson.loads(file.take(length))
    file.size = size
    rows: list[_Row] = []
    start, offset = file.at, 0
    while file.at < size:
        rows.append(_record(file, version))
        offset = rows[-1]["offset"]
        if file.at - start >= _BATCH:
            yield _batch(rows, header)
            rows, start = [], file.at
    if rows:
        yield _batch(rows, header)
    file.end()
    if offset != last:
        raise ValueError(f"expected {last} as last offset, found {offset}")


def _record(file: _File, version: int) -> _Row:
    # Version 1 has no null: an empty key may have been null.
    null = -1 if version == 2 else None
    row: _Row = {"key": file.optional(null), "value": file.optional(null)}
    [row["offset"]] = file.numbers(">Q")
    if version == 1:
        return {**row, "timestamp": -1, "timestamp_type": 0, "headers": []}
    row["timestamp"], row["timestamp_type"], count = file.numbers(">qiI")
    row["headers"] = [_header(file) for _ in range(count)]
    return row


def _header(file: _File) -> _Row:
    [length] = file.numbers(">Q")
    return {"key": file.take(length).decode(), "value": file.optional(-1)}


def _batch(rows: list[_Row], header: _Row) -> pa.RecordBatch:
    columns = [
        pa.array([header[f.name]] * len(rows) if f.name in PLACE else [row[f.name] for row in rows], f.type)
        for f in RECORD
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD)

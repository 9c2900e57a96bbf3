"""Parquet: one row a Kafka record, with everything Kafka had.

Row groups end by the bytes of their records. The rows of the open one are held; `spill` moves them to disk.
A timestamp that Kafka does not have is stored as Kafka says it, -1, and one beyond the year 9999 as it is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import RECORD, Buffer, Content, Target
from kafka_archiver.formats.cuts import cuts
from kafka_archiver.formats.held import HeldRows
from kafka_archiver.formats.parquet_file import SCHEMA, RowGroups
from kafka_archiver.formats.records import COLUMNS, normalised
from kafka_archiver.formats.vectors import Int64s
from kafka_archiver.plan import Settings

# Of the records in memory: 27,000 of 1.2 KB or 160,000 of 140 B. Encoding one takes about as much again.
_ROW_GROUP = 32 << 20
# What a record counts besides its key, value and headers, so that half a million empty ones fill a row group too.
_FIXED = 64


class _Encoder:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._file = RowGroups(target.codec)
        self._rows = HeldRows(COLUMNS)
        self._size = 0

    @property
    def pending(self) -> int:
        return self._rows.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        batch = normalised(batch)
        sizes = _sizes(batch)
        ready: list[Buffer] = []
        start = 0
        for end in cuts(sizes, self._size, _ROW_GROUP):
            self._rows.add(batch.slice(start, end - start))
            ready += self._close_row_group()
            start = end
        self._rows.add(batch.slice(start))
        self._size += int(sizes[start:].sum())
        return ready

    def spill(self, directory: Path) -> int:
        return self._rows.spill(directory)

    def finish(self) -> list[Buffer]:
        last = self._close_row_group() if self._size else []
        return [*last, *self._file.finish()]

    def _close_row_group(self) -> list[Buffer]:
        rows = self._rows.take()
        self._size = 0
        count = len(rows)
        topic = pa.DictionaryArray.from_arrays(np.zeros(count, np.int8), pa.array([self._target.topic]))
        partition = pa.repeat(pa.scalar(self._target.partition, pa.int32()), count)
        columns = {"topic": topic, "partition": partition, **dict(zip(rows.column_names, rows.columns, strict=True))}
        columns["timestamp"] = columns["timestamp"].cast(SCHEMA.field("timestamp").type)
        return self._file.add(pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA))


def _sizes(batch: pa.RecordBatch) -> Int64s:
    """The bytes of each record of a normalised batch, as they count for a row group."""
    headers = batch.column("headers")
    parts = headers.flatten()
    ends = np.concatenate([[0], np.cumsum(_lengths(parts.field("key")) + _lengths(parts.field("value")))])
    last = np.cumsum(headers.value_lengths().to_numpy())
    sizes: Int64s = np.diff(ends[last], prepend=0)
    sizes += _FIXED + _lengths(batch.column("key")) + _lengths(batch.column("value"))
    return sizes


def _lengths(values: pa.Array) -> Int64s:
    lengths: Int64s = pc.binary_length(values).fill_null(0).to_numpy()
    return lengths


class Parquet:
    """The format `parquet`."""

    name = "parquet"
    extensions: ClassVar[Mapping[str, str]] = dict.fromkeys(("none", "snappy", "gzip", "zstd"), ".parquet")
    contents: ClassVar[frozenset[Content]] = frozenset({"record"})

    def encoder(self, target: Target) -> _Encoder:
        """A new encoder."""
        return _Encoder(target)

    def stage(self, settings: Settings) -> None:
        """None."""

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """The records back."""
        try:
            file = pq.ParquetFile(source, page_checksum_verification=True)
            for batch in file.iter_batches(use_threads=False):
                yield pa.RecordBatch.from_arrays(
                    [batch.column(field.name).cast(field.type) for field in RECORD], schema=RECORD
                )
        except (pa.ArrowException, OSError, LookupError, ValueError) as error:
            raise IntegrityError(f"{target.key} is not a whole Parquet file of records: {error}") from error

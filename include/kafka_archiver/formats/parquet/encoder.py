"""Parquet: one row a Kafka record, with everything Kafka had.

Row groups end by the bytes of their records. The rows of the open one are held; `spill` moves them to disk.
A timestamp that Kafka does not have is stored as Kafka says it, -1, and one beyond the year 9999 as it is.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import Buffer, Target
from kafka_archiver.formats.parquet.file import SCHEMA, RowGroups
from kafka_archiver.formats.shared.cuts import cuts
from kafka_archiver.formats.shared.held import HeldRows
from kafka_archiver.formats.shared.records import COLUMNS, normalised
from kafka_archiver.formats.vectors import Int64s

# Of the records in memory: 27,000 of 1.2 KB or 160,000 of 140 B. Encoding one takes about as much again.
_ROW_GROUP = 32 << 20
# What a record counts besides its key, value and headers, so that half a million empty ones fill a row group too.
_FIXED = 64


class ParquetEncoder:
    """Encodes records as row groups."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._file = RowGroups(target.settings.codec)
        self._rows = HeldRows(COLUMNS)
        self._size = 0

    @property
    def pending(self) -> int:
        """The memory that the rows of the open row group take."""
        return self._rows.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records. Returns what is ready to be stored."""
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
        """Move the rows of the open row group to disk."""
        return self._rows.spill(directory)

    def finish(self) -> list[Buffer]:
        """The rest."""
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

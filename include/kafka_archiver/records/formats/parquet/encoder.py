"""Parquet: one row a record, with the columns of the target's schema.

The bytes of its records decide where a row group ends. Memory holds the rows of the open one; `spill` moves them to
disk. A record without a timestamp is stored with -1, as in Kafka; a timestamp after the year 9999 is stored unchanged.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.parquet.file import RowGroups, stored
from kafka_archiver.records.formats.parquet.sizes import size_of, sizes_of
from kafka_archiver.records.formats.parquet.spark import as_readable, written
from kafka_archiver.records.formats.shared.buffered_rows import BufferedRows
from kafka_archiver.records.formats.shared.cuts import cuts
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as
from kafka_archiver.records.formats.shared.records import encoder_schema, kafkas, normalised

# Bytes in memory: 27,000 records of 1.2 KB, or 160,000 of 140 B. Encoding takes about the same memory again.
_ROW_GROUP = 32 << 20
# Bytes that every record counts besides its values: half a million empty records fill a row group. Kafka's integer
# columns are included.
_FIXED = 64


class ParquetEncoder:
    """Encodes records as row groups."""

    def __init__(self, target: Target) -> None:
        self._target, self._brought = target, encoder_schema(target.schema)
        options = ParquetOptions.model_validate(target.settings.options)
        schema = written(target.schema, options)
        self._columns, self._stored = encoder_schema(schema), stored(schema)
        self._is_changed = self._columns != self._brought
        self._counted = [f for f in self._columns if not (kafkas(f) and pa.types.is_integer(f.type))]
        self._most_rows = options.row_group_rows or sys.maxsize
        self._file = RowGroups(schema, target.settings.codec, options)
        self._rows = BufferedRows(self._columns)
        self._size = self._count = 0

    @property
    def pending(self) -> int:
        return self._rows.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        batch = normalised(batch, self._brought)
        if self._is_changed:
            batch = as_readable(batch, self._target.schema, self._columns)
        size = size_of(batch, self._counted) + _FIXED * batch.num_rows
        if self._size + size < _ROW_GROUP and self._count + batch.num_rows < self._most_rows:
            # Most batches: the row group does not end in them.
            self._add(batch, size)
            return []
        sizes = sizes_of(batch, self._counted) + _FIXED
        ready: list[Buffer] = []
        start = 0
        for end in cuts(sizes, self._size, _ROW_GROUP, self._count, self._most_rows):
            self._rows.add(batch.slice(start, end - start))
            ready += self._close_row_group()
            start = end
        self._add(batch.slice(start), int(sizes[start:].sum()))
        return ready

    def _add(self, batch: pa.RecordBatch, size: int) -> None:
        self._rows.add(batch)
        self._size += size
        self._count += batch.num_rows

    def spill(self, directory: Path) -> int:
        return self._rows.spill(directory)

    def finish(self) -> list[Buffer]:
        last = self._close_row_group() if self._size else []
        return [*last, *self._file.finish()]

    def _close_row_group(self) -> list[Buffer]:
        rows = self._rows.take()
        self._size = self._count = 0
        columns = [self._column(field, rows) for field in self._stored]
        table = pa.Table.from_arrays(columns, schema=bare(self._stored))
        if not table.schema.equals(self._stored):
            table = pa.Table.from_batches([seen_as(batch, self._stored) for batch in table.to_batches()])
        return self._file.add(table)

    def _column(self, field: pa.Field, rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        name = kafkas(field)
        if name == "topic":
            return pa.DictionaryArray.from_arrays(np.zeros(len(rows), np.int8), [self._target.topic])
        if name == "partition":
            return pa.repeat(pa.scalar(self._target.partition, pa.int32()), len(rows))
        # From milliseconds to a timestamp type, without a copy.
        return rows.column(field.name).cast(field.type) if name == "timestamp" else rows.column(field.name)

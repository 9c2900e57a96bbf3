"""Parquet: one row a record, with the columns of the target's schema.

The bytes of its records decide where a row group ends. Memory holds the rows of the open one; `spill` moves them to
disk. A record without a timestamp is stored with -1, as in Kafka; a timestamp after the year 9999 is stored unchanged.
"""

import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.parquet.file import RowGroups, stored
from kafka_archiver.records.formats.parquet.spark import as_readable, written
from kafka_archiver.records.formats.shared.buffered_rows import BufferedRows
from kafka_archiver.records.formats.shared.cuts import cuts
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as
from kafka_archiver.records.formats.shared.records import encoder_schema, kafkas, normalised
from kafka_archiver.records.vectors import lengths
from kafka_archiver.values.columns import Int64s

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
        """The memory that the rows of the open row group take."""
        return self._rows.memory

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records; return the bytes that are ready."""
        batch = normalised(batch, self._brought)
        if self._is_changed:
            batch = as_readable(batch, self._target.schema, self._columns)
        sizes = _sizes(batch, self._counted)
        ready: list[Buffer] = []
        start = 0
        for end in cuts(sizes, self._size, _ROW_GROUP, self._count, self._most_rows):
            self._rows.add(batch.slice(start, end - start))
            ready += self._close_row_group()
            start = end
        self._rows.add(batch.slice(start))
        self._size += int(sizes[start:].sum())
        self._count += len(sizes) - start
        return ready

    def spill(self, directory: Path) -> int:
        """Move the rows of the open row group to disk."""
        return self._rows.spill(directory)

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
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


def _sizes(batch: pa.RecordBatch, fields: list[pa.Field]) -> Int64s:
    """The bytes that each record of a normalised batch counts for its row group: those of `fields`, plus `_FIXED`."""
    sizes = np.full(batch.num_rows, _FIXED, np.int64)
    for field in fields:
        try:
            sizes += _sizes_of(batch.column(field.name))
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(f"store.format: parquet cannot store column {field.name} of type {field.type}") from error
    return sizes


def _sizes_of(values: pa.Array) -> Int64s:
    """The bytes of each value. A null of a type of fixed width counts like a value."""
    kind = values.type
    if pa.types.is_struct(kind):
        return reduce(np.add, map(_sizes_of, values.flatten()))
    if pa.types.is_map(kind):
        return _sizes_of(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = np.concatenate([[0], np.cumsum(_sizes_of(values.flatten()))])
        last = np.cumsum(values.value_lengths().fill_null(0).to_numpy())
        sizes: Int64s = np.diff(ends[last], prepend=0)
        return sizes
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return np.full(len(values), max(1, kind.bit_width // 8), np.int64)
    if pa.types.is_fixed_size_binary(kind):
        return np.full(len(values), kind.byte_width, np.int64)
    return lengths(values)

"""The bytes of values that decide where a row group ends."""

from functools import reduce

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.vectors import entries, lengths
from kafka_archiver.values.columns import Int64s

# Of the types of bytes: how it has the ends of values.
_ENDS = dict.fromkeys((pa.binary(), pa.string()), np.dtype(np.int32))
_ENDS |= dict.fromkeys((pa.large_binary(), pa.large_string()), np.dtype(np.int64))


def sizes_of(batch: pa.RecordBatch, fields: list[pa.Field]) -> Int64s:
    """Return the bytes that each row has in these columns. :raises ConfigError: Parquet cannot store one of them."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for field in fields:
        try:
            sizes += _each(batch.column(field.name))
        except pa.ArrowNotImplementedError as error:
            raise ConfigError(f"store.format: parquet cannot store column {field.name} of type {field.type}") from error
    return sizes


def size_of(batch: pa.RecordBatch, fields: list[pa.Field]) -> int:
    """Return the bytes of all rows, as `sizes_of` adds them up, for a fifth of its CPU."""
    try:
        return sum(_all(batch.column(field.name)) for field in fields)
    except pa.ArrowNotImplementedError:
        return int(sizes_of(batch, fields).sum())


def _each(values: pa.Array) -> Int64s:
    """The bytes of each value. A null of a type of fixed width counts like a value."""
    kind = values.type
    if pa.types.is_struct(kind):
        return reduce(np.add, map(_each, values.flatten()))
    if pa.types.is_map(kind):
        return _each(entries(values))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = np.concatenate([[0], np.cumsum(_each(values.flatten()))])
        last = np.cumsum(values.value_lengths().fill_null(0).to_numpy())
        sizes: Int64s = np.diff(ends[last], prepend=0)
        return sizes
    width = _width(kind)
    return lengths(values) if width is None else np.full(len(values), width, np.int64)


def _all(values: pa.Array) -> int:
    kind = values.type
    if pa.types.is_struct(kind):
        return sum(map(_all, values.flatten()))
    if pa.types.is_map(kind):
        return _all(entries(values))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _all(values.flatten())
    width = _width(kind)
    if width is not None:
        return len(values) * width
    ends = _ENDS.get(kind)
    if ends is None or values.null_count or not len(values):
        return int(lengths(values).sum())
    first, last = np.frombuffer(values.buffers()[1], ends, len(values) + 1, ends.itemsize * values.offset)[[0, -1]]
    return int(last) - int(first)


def _width(kind: pa.DataType) -> int | None:
    """The bytes of a value; None: each has its own."""
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return max(1, int(kind.bit_width) // 8)
    return int(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else None

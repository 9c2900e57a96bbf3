"""Columns of batches as vectors, without a copy where there need be none."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.formats.vectors import Int64s

Mask = npt.NDArray[np.bool_]


def column(batch: pa.RecordBatch, name: str) -> Int64s:
    """A column of numbers, not copied."""
    # Not to_numpy(), which imports pandas: half a CPU second a process.
    numbers = batch.column(name)
    return np.frombuffer(numbers.buffers()[1], np.int64, len(numbers), 8 * numbers.offset)


def rows_where(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """The rows at which `mask` is true."""
    # Not pa.array(), for the same reason.
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return batch.filter(pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits]))

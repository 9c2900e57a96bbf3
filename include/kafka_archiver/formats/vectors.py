"""Python values as Arrow arrays without `pa.array` and `pa.scalar`: these import pandas, half a CPU second."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.columns import Int64s

# Type `binary` has 32-bit offsets.
MOST = 2**31 - 1


def int64s(values: Iterable[int], count: int) -> pa.Array:
    """An array of `count` numbers."""
    return vector(np.fromiter(values, np.int64, count))


def vector(numbers: Int64s) -> pa.Array:
    """An array of numbers."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def binaries(values: Sequence[bytes | None]) -> pa.Array:
    """An array of type `binary`; None is null.

    :raises OverflowError: the bytes do not fit one array.
    """
    try:
        lengths = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
    except TypeError:
        # Nulls are rare: here the import of pandas is acceptable.
        _fit(sum(len(value) for value in values if value is not None))
        return pa.array(values, pa.binary())
    _fit(int(lengths.sum()))
    positions = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=positions[1:], dtype=np.int32)
    data = b"".join(values)  # type: ignore[arg-type]
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(positions), pa.py_buffer(data)])


def lengths(values: pa.Array) -> Int64s:
    """The number of bytes of each value; 0 for a null."""
    found: Int64s = pc.binary_length(values).fill_null(0).to_numpy()
    return found


def _fit(size: int) -> None:
    if size > MOST:
        raise OverflowError(f"{size:,} bytes do not fit one Arrow array")


def large_binary(value: bytes) -> pa.Scalar:
    """A scalar of type `large_binary`."""
    positions = np.array([0, len(value)], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(positions), pa.py_buffer(value)])[0]


def large_binaries(positions: Int64s, data: pa.Buffer | npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    """An array of type `large_binary`: the bytes of `data` between each two positions."""
    buffers = [None, pa.py_buffer(positions.astype(np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(positions) - 1, buffers)


def fixed(numbers: npt.NDArray[Any]) -> pa.LargeBinaryArray:
    """Each number's bytes, in the byte order of its type."""
    plain = np.ascontiguousarray(numbers)
    return large_binaries(np.arange(len(plain) + 1) * plain.itemsize, plain.view(np.uint8))


def grouped(items: pa.LargeBinaryArray, counts: Int64s) -> pa.LargeBinaryArray:
    """The items of each record joined. They are adjacent in memory already, so only the offsets change.

    :param counts: the number of items of each record.
    """
    starts, data = buffers_of(items)
    return large_binaries(starts[np.concatenate([[0], np.cumsum(counts)])], data)


def buffers_of(values: pa.LargeBinaryArray) -> tuple[Int64s, pa.Buffer]:
    """The positions of the values in the buffer, one more than values, and the buffer."""
    _, positions, data = values.buffers()
    return np.frombuffer(positions, np.int64)[values.offset : values.offset + len(values) + 1], data

"""Python values as Arrow arrays without `pa.array` and `pa.scalar`: those import pandas, half a CPU second each."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.columns import Int64s

# Positions of type `binary` have 32 bits.
MOST = 2**31 - 1


def int64s(values: Iterable[int], count: int) -> pa.Array:
    """An array of `count` numbers."""
    return vector(np.fromiter(values, np.int64, count))


def vector(numbers: Int64s) -> pa.Array:
    """An array of numbers."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def binaries(values: Sequence[bytes | None]) -> pa.Array:
    """An array of type `binary`; None is null.

    :raises OverflowError: so many bytes do not fit one.
    """
    try:
        lengths = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
    except TypeError:
        # Nulls are rare; an array with some is worth an import.
        _fit(sum(len(value) for value in values if value is not None))
        return pa.array(values, pa.binary())
    _fit(int(lengths.sum()))
    positions = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=positions[1:], dtype=np.int32)
    data = b"".join(values)  # type: ignore[arg-type]
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(positions), pa.py_buffer(data)])


def lengths(values: pa.Array) -> Int64s:
    """The bytes of each value; those of null are 0."""
    found: Int64s = pc.binary_length(values).fill_null(0).to_numpy()
    return found


def _fit(size: int) -> None:
    if size > MOST:
        raise OverflowError(f"{size:,} bytes in one array")


def large_binary(value: bytes) -> pa.Scalar:
    """A scalar of type `large_binary`."""
    positions = np.array([0, len(value)], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(positions), pa.py_buffer(value)])[0]

"""Parts of the values of binary columns, as vectors.

`pyarrow.compute.binary_slice` (26.0) fails where a value is shorter than the slice's start.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.values.columns import Int64s

ByteArray = npt.NDArray[np.uint8]


def bounds(values: pa.Array) -> tuple[ByteArray, Int64s, Int64s]:
    """The bytes of a binary or large_binary column, and each value's start and end in them. A null has none."""
    _, positions, data = values.buffers()
    width = "i8" if values.type == pa.large_binary() else "i4"
    ends = np.frombuffer(positions, width)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    whole = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    starts, ends = ends[:-1] - ends[0], ends[1:] - ends[0]
    if values.null_count:
        ends = np.where(values.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return whole, starts, ends


def slices(data: ByteArray, starts: Int64s, ends: Int64s) -> pa.Array:
    """These parts of the bytes, as large_binary. They ascend and do not overlap."""
    # An array over the whole data: the wanted parts at its even places, what is between them at the odd ones.
    places = np.empty(2 * len(starts) + 1, np.int64)
    places[0:-1:2], places[1::2], places[-1] = starts, ends, 0
    np.maximum.accumulate(places, out=places)
    whole = pa.Array.from_buffers(pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(places), pa.py_buffer(data)])
    return whole.take(numbers(np.arange(0, 2 * len(starts), 2)))


def numbers(values: Int64s) -> pa.Array:
    """An array of numbers."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def indices(places: Int64s) -> pa.Array:
    """Indices to take; -1 takes a null."""
    integers = numbers(places)
    valid = np.packbits(places >= 0, bitorder="little")
    return pa.Array.from_buffers(pa.int64(), len(places), [pa.py_buffer(valid), integers.buffers()[1]])

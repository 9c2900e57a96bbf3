"""Python values as Arrow arrays without `pa.array` and `pa.scalar`: these import pandas, half a CPU second."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.values.columns import Int64s

ByteArray = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
# Type `binary` has 32-bit offsets.
MOST = 2**31 - 1
# An array has the bytes of each row, `bytes` are the same for all rows. Joining leaves nulls out.
Piece: TypeAlias = pa.Array | bytes


def bounds(values: pa.Array) -> tuple[ByteArray, Int64s, Int64s]:
    """The bytes of a binary or large_binary column, and each value's start and end in them. A null has none."""
    whole, places = text_of(values)
    places = places.astype(np.int64) - places[0]
    starts, ends = places[:-1], places[1:]
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


def int64s(values: Iterable[int], count: int) -> pa.Array:
    """An array of `count` numbers."""
    return numbers(np.fromiter(values, np.int64, count))


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
    byte_lengths: Int64s = pc.binary_length(values).fill_null(0).to_numpy()
    return byte_lengths


def _fit(size: int) -> None:
    if size > MOST:
        raise OverflowError(f"{size:,} bytes do not fit one Arrow array")


@lru_cache(1 << 12)
def large_binary(value: bytes) -> pa.Scalar:
    """A scalar of type `large_binary`."""
    positions = np.array([0, len(value)], np.int64)
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(positions), pa.py_buffer(value)])[0]


def large_binaries(
    positions: Int64s, data: pa.Buffer | npt.NDArray[np.uint8], present: Mask | None = None
) -> pa.LargeBinaryArray:
    """An array of type `large_binary`: the bytes of `data` between each two positions.

    :param present: which values are not null; None: all.
    """
    nulls = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [nulls, pa.py_buffer(positions.astype(np.int64)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(positions) - 1, buffers)


def valid(values: pa.Array) -> Mask | None:
    """Return the values that are not null; None: no value is null."""
    return values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None


def spread(values: pa.LargeBinaryArray, present: Mask) -> pa.LargeBinaryArray:
    """The values in the places that are true; null in the others."""
    text, ends = text_of(values)
    return large_binaries((ends - ends[0])[np.concatenate([[0], np.cumsum(present)])], text, present)


def entries(maps: pa.Array) -> pa.ListArray:
    """The pairs of key and item of each map as a list."""
    return maps.cast(pa.list_(pa.struct([maps.type.key_field, maps.type.item_field])))


def raw(values: pa.Array) -> ByteArray:
    """The bytes of values of fixed width, one row each."""
    width = values.type.byte_width
    data = np.frombuffer(values.buffers()[1], np.uint8) if len(values) else np.zeros(0, np.uint8)
    return data[values.offset * width : (values.offset + len(values)) * width].reshape(len(values), width)


def fixed(values: npt.NDArray[Any]) -> pa.LargeBinaryArray:
    """The bytes of each number, or of each row of a table of numbers, in the byte order of their type."""
    plain = np.ascontiguousarray(values)
    width = plain.itemsize * prod(plain.shape[1:])
    return large_binaries(np.arange(len(plain) + 1) * width, plain.ravel().view(np.uint8))


def grouped(items: pa.LargeBinaryArray, counts: Int64s) -> pa.LargeBinaryArray:
    """The items of each record joined. They are adjacent in memory already, so only the offsets change.

    :param counts: the number of items of each record.
    """
    text, ends = text_of(items)
    return large_binaries((ends - ends[0])[np.concatenate([[0], np.cumsum(counts)])], text)


def text_of(values: pa.Array) -> tuple[ByteArray, Int64s]:
    """The bytes of all values, and their offsets in the whole buffer: one more than values."""
    _, positions, data = values.buffers()
    ends = np.frombuffer(positions, "i8" if values.type == pa.large_binary() else "i4")[
        values.offset : values.offset + len(values) + 1
    ]
    if not len(values) or data is None:
        return np.empty(0, np.uint8), np.zeros(len(values) + 1, np.int64)
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], ends


def wrapped(values: pa.LargeBinaryArray, before: bytes, after: bytes, null: bytes) -> list[Piece]:
    """Each value between two constants; a null is `null` without them."""
    if not values.null_count:
        return [before, values, after]
    if values.null_count == len(values):
        return [null]
    if not before and not after:
        return [values.fill_null(large_binary(null))]
    present = values.is_valid()
    return [
        pc.if_else(present, large_binary(before), large_binary(null)),
        values,
        pc.if_else(present, large_binary(after), large_binary(b"")),
    ]


def joined(count: int, pieces: Sequence[Piece]) -> pa.LargeBinaryArray:
    """The pieces of each of `count` rows joined, in memory of its own."""
    if all(isinstance(piece, bytes) for piece in pieces):
        constant = np.frombuffer(b"".join(pieces), np.uint8)
        return fixed(np.broadcast_to(constant, (count, len(constant))).copy())
    columns: list[pa.Array | pa.Scalar] = []
    # Adjacent constants become one piece: each piece costs one copy a row.
    for same, some in groupby(pieces, key=lambda piece: isinstance(piece, bytes)):
        batches = list(some)
        columns += [large_binary(b"".join(batches))] if same else batches
    return pc.binary_join_element_wise(*columns, large_binary(b""), null_handling="skip")

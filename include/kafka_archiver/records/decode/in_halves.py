"""Decodes batches with functions that fail as a whole on one bad row."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from kafka_archiver.records.decode.base import Decoded

# Takes rows (an array, or a list of what was read of them). Raises ValueError with the reason if one cannot be decoded.
Whole = Callable[[Any], pa.Array]


def decode_in_halves(data: Any, decode: Whole, kind: pa.DataType) -> Decoded:
    """Decode all rows; on an error each half, down to the rows that are bad.

    :param kind: the type of what `decode` returns.
    """
    reasons: dict[int, str] = {}
    pieces = list(_pieces(data, decode, kind, 0, reasons))
    return Decoded(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces or [pa.nulls(0, kind)]), reasons)


def _pieces(data: Any, decode: Whole, kind: pa.DataType, start: int, reasons: dict[int, str]) -> Iterator[pa.Array]:
    if not len(data):
        return
    try:
        yield decode(data)
        return
    except ValueError as error:
        if len(data) == 1:
            reasons[start] = str(error)
            yield pa.nulls(1, kind)
            return
    middle = len(data) // 2
    yield from _pieces(data[:middle], decode, kind, start, reasons)
    yield from _pieces(data[middle:], decode, kind, start + middle, reasons)

"""Rows that cannot be decoded: a batch is halved until they stand alone, each with its reason."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from kafka_archiver.messages.foreign_text import record_value, without_marks
from kafka_archiver.records.decode.base import Decoded, Decoder, one_after_the_other

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


class Guarded:
    """A decoder that refuses a record, whatever happens when it decodes it: nobody else's record stops an archive.

    A batch that fails is decoded in halves, down to the records at fault.

    :param shows_values: whether reasons repeat parts of records.
    """

    def __init__(self, decoder: Decoder, shows_values: bool = True) -> None:
        self._decoder, self.field, self._shows_values = decoder, decoder.field, shows_values

    def decode(self, data: pa.Array) -> Decoded:
        decoded = self._decode(data)
        if not decoded.reasons:
            return decoded
        reasons = {row: without_marks(reason, self._shows_values) for row, reason in decoded.reasons.items()}
        return decoded._replace(reasons=reasons)

    def _decode(self, data: pa.Array) -> Decoded:
        try:
            return self._decoder.decode(data)
        except BaseException as error:
            if not _is_of_the_data(error) or not len(data):
                raise
            if len(data) == 1:
                reason = f"the decoder failed: {type(error).__name__}: {record_value(str(error))}"
                return Decoded(pa.nulls(1, self.field.type), {0: reason})
        middle = len(data) // 2
        return one_after_the_other([self._decode(data[:middle]), self._decode(data[middle:])])


def _is_of_the_data(error: BaseException) -> bool:
    """Return True if a record has caused it: any error, or a panic of a native library, but no interruption.

    Nor is it a lack of memory: whose fault that is shows the record alone, in a process of its own
    (`spark/fatal_records`).
    """
    if isinstance(error, MemoryError):
        return False
    return isinstance(error, Exception) or is_panic(error)


def is_panic(error: BaseException) -> bool:
    """Return True if this is a panic of a library in Rust, which is no Exception."""
    return type(error).__name__ == "PanicException"

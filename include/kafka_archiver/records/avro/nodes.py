"""Readers of values without parts: from the writer's type to the column's Arrow type."""

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.records.avro.cursor import BadDatumError, Cursor, Datum
from kafka_archiver.records.vectors import Mask, numbers

_QUIET = np.uint32(1 << 22)
# The bytes of decimal128.
_WIDTH = 16


class AvroNode(Protocol):
    """Reads values of one type. Both ways give the same values."""

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of the column."""

    def column(self, at: Cursor) -> pa.Array:
        """Read one value of each record."""

    def value(self, at: Datum) -> Any:
        """Read one value of one record, as `pa.array` takes it.

        :raises BadDatumError: the bytes are no such value.
        """


def typed(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Numbers as an Arrow array of a type that stores them so."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


class Null:
    """Reads nothing."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    def column(self, at: Cursor) -> pa.Array:
        return pa.nulls(len(at), self.kind)

    def value(self, at: Datum) -> None:  # noqa: ARG002
        return None


class Boolean:
    """Reads 0 or 1."""

    kind = pa.bool_()

    def column(self, at: Cursor) -> pa.Array:
        values = at.width(1).ravel()
        at.refuse(values > 1)
        packed = np.packbits(values == 1, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(at), [None, pa.py_buffer(packed)])

    def value(self, at: Datum) -> bool:
        [value] = at.take(1)
        if value > 1:
            raise BadDatumError(f"a boolean is the byte {value}, expected 0 or 1")
        return value == 1


class Integer:
    """Reads an int or a long.

    :param bounds: the smallest and the greatest number that the type has.
    """

    def __init__(self, kind: pa.DataType, bounds: tuple[int, int]) -> None:
        self.kind, self.bounds = kind, bounds
        is_real = pa.types.is_floating(kind)
        self._numpy = np.dtype(f"{'f' if is_real else 'i'}{kind.bit_width // 8}").type
        self._real = (lambda n: float(self._numpy(n))) if is_real else None

    def column(self, at: Cursor) -> pa.Array:
        values = at.longs()
        low, high = self.bounds
        wrong = (values < low) | (values > high)
        if wrong.any():
            at.refuse(wrong)
        return typed(values.astype(self._numpy), self.kind)

    def value(self, at: Datum) -> int | float:
        value, (low, high) = at.long(), self.bounds
        if not low <= value <= high:
            raise BadDatumError(f"the number {value} is not in {low}..{high}")
        return self._real(value) if self._real else value


class Real:
    """Reads a float or a double.

    :param size: the bytes that the writer's type has.
    """

    def __init__(self, kind: pa.DataType, size: int) -> None:
        self.kind, self.size = kind, size

    def column(self, at: Cursor) -> pa.Array:
        values = at.width(self.size)
        if self.size == 8:
            return typed(values.view("<f8"), self.kind)
        bits = values.view("<u4").ravel()
        # As every conversion to a double does.
        bits = np.where(np.isnan(bits.view("<f4")), bits | _QUIET, bits)
        return typed(bits.view("<f4").astype(f"f{self.kind.bit_width // 8}"), self.kind)

    def value(self, at: Datum) -> float:
        value: float = struct.unpack("<f" if self.size == 4 else "<d", at.take(self.size))[0]
        return value


class AvroText:
    """Reads bytes or a string."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind

    def column(self, at: Cursor) -> pa.Array:
        texts = at.binaries()
        try:
            return texts.cast(self.kind)
        except pa.ArrowInvalid:
            # Bytes that are not UTF-8. The record is read again.
            values = texts.to_pylist()
            wrong = np.array([not _is_utf8(value) for value in values])
            at.refuse(wrong)
            text = [b"" if is_wrong else value for value, is_wrong in zip(values, wrong, strict=True)]
            return pa.array(text, self.kind)

    def value(self, at: Datum) -> str | bytes:
        text = at.sized()
        if self.kind == pa.binary():
            return text
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise BadDatumError(f"a string is not UTF-8: {error.reason} at byte {error.start}") from None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


class Fixed:
    """Reads bytes of one size."""

    def __init__(self, size: int) -> None:
        self.kind, self.size = pa.binary(size), size

    def column(self, at: Cursor) -> pa.Array:
        return typed(at.width(self.size), self.kind)

    def value(self, at: Datum) -> bytes:
        return at.take(self.size)


class AvroDecimals:
    """Reads a decimal: an integer in two's complement, the highest byte first.

    :param size: the bytes of a fixed; None for bytes.
    """

    def __init__(self, kind: pa.DataType, size: int | None) -> None:
        self.kind, self.size = kind, size
        self.limit = 10**kind.precision

    def column(self, at: Cursor) -> pa.Array:
        if self.size is None:
            start, end = at.sized()
        else:
            at.refuse(at.left() < self.size)
            start = at.at
            end = start + np.where(at.bad, 0, self.size)
            at.move(end)
        # Longer ones may still fit: they are read one by one.
        at.refuse((end - start > _WIDTH) | (end == start) | (self.kind.bit_width > _WIDTH * 8))
        numbers = np.zeros((len(at), _WIDTH), np.uint8)
        numbers[(end > start) & (at.data[start] > 0x7F)] = 0xFF
        for place in range(min(_WIDTH, int((end - start).max(initial=0)))):
            inside = end - start > place
            numbers[inside, place] = at.data[(end - 1 - place)[inside]]
        at.refuse(self._too_large(numbers))
        numbers[at.bad] = 0
        return typed(numbers, self.kind) if self.kind.bit_width == _WIDTH * 8 else pa.nulls(len(at), self.kind)

    def _too_large(self, numbers: npt.NDArray[np.uint8]) -> Mask:
        """The numbers with more digits than the precision; perhaps more of them: these are read one by one."""
        low, high = numbers.view("<u8")[:, 0], numbers.view("<i8")[:, 1]
        if self.limit < 1 << 64:
            inside: Mask = (high == 0) & (low < self.limit) | (high == -1) & (low > (1 << 64) - self.limit)
        else:
            most = min(self.limit >> 64, (1 << 63) - 1)
            inside = (high < most) & (high > -most)
        return ~inside

    def value(self, at: Datum) -> Decimal:
        digits = at.sized() if self.size is None else at.take(self.size)
        if not digits:
            raise BadDatumError("a decimal has no bytes")
        number = int.from_bytes(digits, signed=True)
        if not -self.limit < number < self.limit:
            raise BadDatumError(f"a decimal has {len(str(abs(number)))} digits, expected at most {self.kind.precision}")
        return Decimal(f"{number}e-{self.kind.scale}")


class Enum:
    """Reads the number of a symbol.

    :param symbols: the column's symbol for each of the writer's, None where it has none.
    """

    kind = pa.string()

    def __init__(self, symbols: Sequence[str | None], names: Sequence[str]) -> None:
        self._symbols, self._names = symbols, names
        self.array = pa.array(symbols, pa.string())
        self.unknown = np.array([symbol is None for symbol in symbols], np.bool_)

    def column(self, at: Cursor) -> pa.Array:
        indexes = at.longs()
        wrong = (indexes < 0) | (indexes >= len(self._symbols))
        indexes = np.where(wrong, 0, indexes)
        wrong |= self.unknown[indexes]
        at.refuse(wrong)
        return self.array.take(numbers(indexes))

    def value(self, at: Datum) -> str:
        index = at.long()
        if not 0 <= index < len(self._symbols):
            raise BadDatumError(f"an enum has no symbol {index}, expected 0..{len(self._symbols) - 1}")
        symbol = self._symbols[index]
        if symbol is None:
            raise BadDatumError(f"the enum's symbol {self._names[index]} is not in the schema that the run writes")
        return symbol


class RefusedType:
    """A part of the writer's schema that does not fit the schema that the run writes."""

    def __init__(self, kind: pa.DataType, reason: str) -> None:
        self.kind, self._reason = kind, reason

    def column(self, at: Cursor) -> pa.Array:
        at.refuse(np.ones(len(at), np.bool_))
        return pa.nulls(len(at), self.kind)

    def value(self, at: Datum) -> Any:  # noqa: ARG002
        raise BadDatumError(self._reason)

"""Where a decoder stands in the bytes of a batch: all records at once (`Cursor`), or one record (`Datum`)."""

import numpy as np
import pyarrow as pa

from kafka_archiver.records.vectors import ByteArray, Mask, bounds, slices
from kafka_archiver.values.columns import Int64s

# A number has at most ten bytes of seven bits each.
_BITS, _LAST = 7, 63
# Zeros after the batch. There, cursors of bad records read zeros: the number 0, empty bytes, the end of an array.
_ZEROS = 32
_ENDS_INSIDE = "the bytes end inside the record"


class BadDatumError(ValueError):
    """Bytes that are not what the schema says. `path`: the fields around them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []

    def __str__(self) -> str:
        where = f"field {'.'.join(self.path)}: " if self.path else ""
        return f"{where}{self.args[0]}"


class Cursor:
    """Places in the bytes of a batch, one for each of some records, in the order of the records.

    `bad`: the records that are not what the schema says, or that vectors are not made for. What is read of them is
    not to be used: they are read again, one by one.
    """

    def __init__(self, data: ByteArray, at: Int64s, end: Int64s, bad: Mask) -> None:
        self.data, self.at, self._end, self.bad = data, at, end, bad

    @classmethod
    def of(cls, values: pa.Array) -> "Cursor":
        """At the start of each of these bytes, none null."""
        return cls.between(*bounds(values))

    @classmethod
    def between(cls, data: ByteArray, starts: Int64s, ends: Int64s) -> "Cursor":
        """At each of these starts; a record has the bytes to its end."""
        padded = np.concatenate([data, np.zeros(_ZEROS, np.uint8)])
        return cls(padded, starts, ends, np.zeros(len(starts), np.bool_))

    def __len__(self) -> int:
        return len(self.at)

    def part(self, rows: Int64s) -> "Cursor":
        """The cursor of some records; `join` takes it back."""
        return Cursor(self.data, self.at[rows], self._end[rows], self.bad[rows])

    def join(self, rows: Int64s, part: "Cursor") -> None:
        """Go where the cursor of these records is."""
        self.at[rows], self.bad[rows] = part.at, part.bad

    def move(self, at: Int64s) -> None:
        """Go there. A record whose end this passes is bad."""
        self.at = at
        self.refuse(at > self._end)

    def refuse(self, wrong: Mask) -> None:
        self.bad |= wrong
        if self.bad.any():
            self.at = np.where(self.bad, len(self.data) - _ZEROS, self.at)

    def left(self) -> Int64s:
        """The number of bytes left; 0 for a bad record."""
        return np.where(self.bad, 0, self._end - self.at)

    def longs(self) -> Int64s:
        """The next number: seven bits a byte, the lowest first, then zigzag."""
        at, byte = self.at + 1, self.data[self.at]
        values = (byte & 0x7F).astype(np.uint64)
        rows = np.flatnonzero(byte > 0x7F)
        wrong = np.zeros(len(self), np.bool_)
        for shift in range(_BITS, _LAST + _BITS, _BITS):
            if not len(rows):
                break
            byte = self.data[at[rows]]
            at[rows] += 1
            values[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            if shift == _LAST:
                wrong[rows] = byte > 1
            rows = rows[byte > 0x7F]
        self.move(at)
        if wrong.any():
            self.refuse(wrong)
        numbers: Int64s = (values >> np.uint64(1)).astype(np.int64) ^ -(values & np.uint64(1)).astype(np.int64)
        return np.where(self.bad, 0, numbers) if self.bad.any() else numbers

    def sized(self) -> tuple[Int64s, Int64s]:
        """Start and end of the next bytes, which have their length before them."""
        length = self.longs()
        wrong = (length < 0) | (length > self.left())
        if wrong.any():
            self.refuse(wrong)
            length = np.where(self.bad, 0, length)
        start = self.at
        self.move(start + length)
        return start, start + length

    def width(self, size: int) -> ByteArray:
        """The next bytes of this size: a row for each record; zeros for a bad one."""
        wrong = self.left() < size
        if wrong.any():
            self.refuse(wrong)
        start = np.where(self.bad, 0, self.at)
        self.move(self.at + np.where(self.bad, 0, size))
        if size > len(self.data) or self.bad.all():
            return np.zeros((len(self), size), np.uint8)
        values: ByteArray = self.data[start[:, None] + np.arange(size)]
        values[self.bad] = 0
        return values

    def binaries(self) -> pa.Array:
        """The next bytes, which have their length before them, as large_binary."""
        start, end = self.sized()
        if self.bad.any():
            start, end = np.where(self.bad, 0, start), np.where(self.bad, 0, end)
        return slices(self.data, start, end)


class Datum:
    """A place in the bytes of one record."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left():
            raise BadDatumError(f"{_ENDS_INSIDE}: found {self.left()} bytes, expected {size}")
        self._at += size
        return self._data[self._at - size : self._at]

    def sized(self) -> bytes:
        """The next bytes, which have their length before them."""
        return self.take(self.long())

    def long(self) -> int:
        """The next number."""
        value = shift = 0
        while True:
            if not self.left():
                raise BadDatumError(f"{_ENDS_INSIDE}, in a number")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += _BITS
            if shift > _LAST:
                raise BadDatumError("a number has more than 64 bits")
        if value >> 64:
            raise BadDatumError("a number has more than 64 bits")
        return (value >> 1) ^ -(value & 1)

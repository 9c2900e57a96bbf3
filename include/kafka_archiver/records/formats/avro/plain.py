"""Reads blocks of plain Kafka records column by column: fastavro makes a dictionary of each, at several times the CPU.

Where a record begins, only the one before it tells. But each begins with the same bytes, the topic and the partition:
places with these bytes are taken for beginnings, all are decoded at once, and then each has to end where the next one
begins. If it does not, or anything else is unusual, the caller reads the blocks with fastavro, which also says what is
wrong with them.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import HEADERS, RECORD
from kafka_archiver.records.formats.vectors import large_binaries
from kafka_archiver.values.columns import Int64s

# The longest number has so many bytes.
_LONGEST = 10
# Records with more headers are read with fastavro.
_MOST_HEADERS = 64


class _OddError(Exception):
    """The blocks are not what this reader knows."""


def plain_records(blocks: Sequence[bytes], counts: Sequence[int]) -> pa.RecordBatch | None:
    """Return the records of decompressed blocks as `RECORD`; None: fastavro has to read them.

    :param counts: the number of records of each block.
    """
    try:
        return _Blocks(blocks, counts).records() if sum(counts) else None
    except (_OddError, ValueError, OverflowError, pa.ArrowException):
        return None


class _Blocks:
    """Blocks, one after the other in one buffer."""

    def __init__(self, blocks: Sequence[bytes], counts: Sequence[int]) -> None:
        # Behind the end are zeros, so that a number can be read at any place.
        self._data = b"".join([*blocks, bytes(_LONGEST)])
        self._bytes = np.frombuffer(self._data, np.uint8)
        self._end = len(self._data) - _LONGEST
        self._edges, self._counts = np.cumsum([0, *map(len, blocks)]), np.asarray(counts)

    def records(self) -> pa.RecordBatch:
        size, begin = self._long(0)
        topic = self._data[begin : begin + size].decode()
        partition, first = self._long(begin + size)
        starts = self._starts(self._data[:first])
        offsets, at = self._longs(starts + first)
        timestamps, at = self._longs(at)
        types, at = self._longs(at)
        keys, at = self._optional(at)
        values, at = self._optional(at)
        headers, at = self._headers(at)
        if (at != np.append(starts[1:], self._end)).any():
            raise _OddError("a record does not end where the next one begins")
        rows = len(starts)
        columns = [
            pa.repeat(pa.scalar(topic), rows),
            pa.repeat(pa.scalar(partition, pa.int32()), rows),
            pa.array(offsets),
            pa.array(timestamps),
            pa.array(types).cast(pa.int32()),
            keys.cast(pa.binary()),
            values.cast(pa.binary()),
            headers,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RECORD)

    def _starts(self, prefix: bytes) -> Int64s:
        matches = re.compile(re.escape(prefix)).finditer(self._data, 0, self._end)
        starts = np.array([match.start() for match in matches], np.int64)
        if (np.diff(np.searchsorted(starts, self._edges)) != self._counts).any() or starts[0]:
            raise _OddError("these bytes are elsewhere, too")
        return starts

    def _long(self, place: int) -> tuple[int, int]:
        value, end = self._longs(np.array([place]))
        return int(value[0]), int(end[0])

    def _longs(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return the number at each place, and the place behind it: seven bits a byte, the lowest first, zigzag."""
        raw, ends = np.zeros(len(places), np.uint64), places.copy()
        is_open = np.ones(len(places), bool)
        for number in range(_LONGEST):
            digits = self._bytes.take(ends, mode="clip")
            raw |= np.where(is_open, digits & 0x7F, 0).astype(np.uint64) << np.uint64(7 * number)
            ends += is_open
            is_open = is_open & (digits >= 0x80)
            if not is_open.any():
                break
        else:
            raise _OddError("a number is too long")
        return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), ends

    def _optional(self, places: Int64s) -> tuple[pa.LargeBinaryArray, Int64s]:
        """Return the bytes at each place, null if the union says so, and the place behind them."""
        branch, begins = self._longs(places)
        if ((branch != 0) & (branch != 1)).any():
            raise _OddError("a union has more branches")
        present = branch == 1
        values, ends = self._sized(np.where(present, begins, self._end))
        if present.all():
            return values, ends
        return pc.if_else(pa.array(present), values, None), np.where(present, ends, begins)

    def _sized(self, places: Int64s) -> tuple[pa.LargeBinaryArray, Int64s]:
        """Return the bytes at each place, which begin with their number, and the place behind them."""
        sizes, begins = self._longs(places)
        ends = begins + sizes
        # A null is read from the place behind the end.
        if (sizes < 0).any() or (ends > self._end + 1).any():
            raise _OddError("a value ends behind the block")
        return self._cut(begins, ends), ends

    def _cut(self, begins: Int64s, ends: Int64s) -> pa.LargeBinaryArray:
        """Return the bytes between each two places."""
        order = np.argsort(begins, kind="stable")
        edges = np.column_stack((begins[order], ends[order])).ravel()
        if (np.diff(edges) < 0).any():
            raise _OddError("values overlap")
        pieces = large_binaries(edges, pa.py_buffer(self._data)) if len(edges) else pa.array([], pa.large_binary())
        chosen = np.empty(len(order), np.int64)
        chosen[order] = 2 * np.arange(len(order))
        return pieces.take(pa.array(chosen))

    def _headers(self, places: Int64s) -> tuple[pa.ListArray, Int64s]:
        """Return the headers at each place, an array of one block, and the place behind them."""
        counts, at = self._longs(places)
        if (counts < 0).any() or counts.max() > _MOST_HEADERS:
            raise _OddError("an array has its size, or very many items")
        rows, turns, keys, values = [], [], [pa.array([], pa.large_binary())], [pa.array([], pa.large_binary())]
        for turn in range(int(counts.max())):
            own = np.flatnonzero(counts > turn)
            names, behind = self._sized(at[own])
            contents, at[own] = self._optional(behind)
            rows.append(own)
            turns.append(np.full(len(own), turn))
            keys.append(names)
            values.append(contents)
        if rows:
            filled = np.flatnonzero(counts)
            ended, at[filled] = self._longs(at[filled])
            if ended.any():
                raise _OddError("an array has several blocks")
        order = (
            pa.array(np.lexsort((np.concatenate(turns), np.concatenate(rows)))) if rows else pa.array([], pa.int64())
        )
        kind = HEADERS.value_type
        names, contents = pa.concat_arrays(keys).take(order), pa.concat_arrays(values).take(order)
        pairs = pa.StructArray.from_arrays(
            [names.cast(kind.field("key").type), contents.cast(kind.field("value").type)], fields=list(kind)
        )
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), pairs, HEADERS), at

"""Columns that rows.c fills: memory for them, and arrays of what it has filled."""

from collections.abc import Callable, Mapping, Sequence
from ctypes import byref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.records.rows.library import COUNT, MOST_NAMES, NODE, Kind, Program
from kafka_archiver.records.vectors import MOST, ByteArray, Mask
from kafka_archiver.values.columns import Int64s

# Levels of a schema: C calls itself for each.
DEEPEST = 64
_ALIGNED = 64
# A column gets so much more memory than it needed so far, in proportion.
_SPARE = 1.125
_ASCII = 0x80


class NotCompiledError(Exception):
    """C does not read such a type."""


# Makes the array of the column of a number.
Make = Callable[["Filled", int], pa.Array]


@dataclass
class Column:
    """A node for C, and what makes its array.

    `width`: bytes of a row; `names`: of the parts of a JSON object; the others: see `struct node`.
    """

    kind: Kind
    make: Make
    width: int = 0
    size: int = 0
    low: int = 0
    high: int = 0
    parts: Sequence[int] = ()
    places: Sequence[int] = ()
    known: ByteArray | None = None
    names: Sequence[str] = ()
    nullable: bool = False


class Filled:
    """Buffers that C has filled. `places` and `sizes`: where each column has its validity, its data and its bytes."""

    def __init__(
        self, columns: Sequence[Column], arena: pa.Buffer, places: Int64s, sizes: Int64s, counts: npt.NDArray[Any]
    ) -> None:
        self._columns, self._arena = columns, arena
        self._places, self._sizes = places.tolist(), sizes.tolist()
        self.rows, self._nulls = counts["rows"].tolist(), counts["nulls"].tolist()

    def buffer(self, number: int, which: int) -> pa.Buffer:
        return self._arena.slice(self._places[number][which], self._sizes[number][which])

    def array(self, number: int, kind: pa.DataType, *more: pa.Buffer, children: Sequence[pa.Array] = ()) -> pa.Array:
        """Return a column as an array of this type. :param more: its buffers besides the validity."""
        nulls = self._nulls[number]
        buffers = [self.buffer(number, 0) if nulls else None, *more]
        return pa.Array.from_buffers(kind, self.rows[number], buffers, nulls, children=list(children) or None)

    def column(self, number: int) -> pa.Array:
        """Return the array of a column. :raises ArrowInvalid: a string is not UTF-8."""
        return self._columns[number].make(self, number)


class CompiledRows:
    """Reads records of Avro or JSON.

    :param columns: the nodes; the first is the record's. :raises NotCompiledError: an object has too many names.
    """

    def __init__(self, library: SimpleNamespace, columns: Sequence[Column], is_json: bool = False) -> None:
        self._library, self._columns, self._is_json = library, columns, is_json
        if max(len(column.names) for column in columns) > MOST_NAMES:
            raise NotCompiledError
        self._parts, self._nodes = _tables(columns)
        self._names, self._name_ends = _names(columns)
        self._bits = self._nodes["kind"] == Kind.BOOLEAN
        self._has_ends = np.isin(self._nodes["kind"], (Kind.TEXT, Kind.LIST, Kind.MAP))
        self._is_text = self._nodes["kind"] == Kind.TEXT
        self._nullable = np.array([column.nullable for column in self._columns])
        # Of each column the rows a record beyond one, and the bytes a byte.
        self._row_rates, self._byte_rates = np.zeros((2, len(self._columns)))

    def read(self, data: ByteArray, starts: Int64s, ends: Int64s) -> tuple[pa.Array, Mask] | None:
        """Return the column of the records that are not bad, and which are bad.

        None: some text is not UTF-8, or there are more bytes than 32-bit offsets count.
        """
        records, size = len(starts), len(data)
        if size > MOST:
            return None
        counts, kept = np.zeros((2, len(self._columns)), COUNT)
        bad = np.zeros(records, np.bool_)
        rows = records + (self._row_rates * records).astype(np.int64)
        used = (self._byte_rates * size).astype(np.int64)
        addresses = [array.ctypes.data for array in (data, starts, ends)]
        while True:
            arena, places, nodes = self._allocate(rows, used)
            counts[:] = 0
            tables = (nodes, self._parts, counts, self._names, self._name_ends)
            program = byref(Program(*(table.ctypes.data for table in tables)))
            self._library.read(
                *addresses, records, self._is_json, program, len(nodes), kept.ctypes.data, bad.ctypes.data
            )
            if (counts["rows"] <= rows).all() and (counts["used"] <= used)[self._is_text].all():
                break
            rows, used = np.maximum(rows, counts["rows"]), np.maximum(used, counts["used"])
            self._row_rates = np.maximum(self._row_rates, _SPARE * (counts["rows"] - records) / records)
            self._byte_rates = np.maximum(self._byte_rates, _SPARE * counts["used"] / size)
        sizes = self._sizes(counts["rows"], counts["used"])
        try:
            return Filled(self._columns, arena, places, sizes, counts).column(0), bad
        except pa.ArrowInvalid:
            return None

    def _allocate(self, rows: Int64s, used: Int64s) -> tuple[pa.Buffer, Int64s, npt.NDArray[Any]]:
        """Return memory for the columns, where each has its three buffers there, and the nodes that say so."""
        sizes = self._sizes(rows, used)
        aligned = -(-sizes // _ALIGNED) * _ALIGNED
        places = (np.cumsum(aligned) - aligned.ravel()).reshape(sizes.shape)
        arena = pa.allocate_buffer(int(aligned.sum()))
        nodes = self._nodes.copy()
        nodes["most_rows"], nodes["most_used"] = rows, used
        for which, name in enumerate(("present", "data", "bytes")):
            [has] = np.nonzero(sizes[:, which])
            nodes[name][has] = (arena.address + places[has, which]).astype(np.uint64)
        return arena, places, nodes

    def _sizes(self, rows: Int64s, used: Int64s) -> Int64s:
        """Return the bytes of the three buffers of each column."""
        bits = -(-rows // 8)
        data = np.where(self._bits, bits, rows * self._nodes["width"]) + np.where(self._has_ends, 4, 0)
        return np.stack([np.where(self._nullable, bits, 0), data, np.where(self._is_text, used, 0)], axis=1)


def _tables(columns: Sequence[Column]) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the parts and the nodes for C."""
    parts: list[int] = []
    nodes = np.zeros(len(columns), NODE)
    for number, column in enumerate(columns):
        of_part = 2 if column.kind in (Kind.OPTIONAL, Kind.UNION) else 1
        place = len(parts) + len(column.parts)
        known = 0 if column.known is None else column.known.ctypes.data
        plain = (column.kind, column.width, column.size, column.low, column.high)
        nested = (len(parts), len(column.parts) // of_part, place, len(column.places))
        nodes[number] = (*plain, *nested, 0, 0, 0, 0, known)
        parts += [*column.parts, *column.places]
    return np.array(parts or [0], np.int32), nodes


def _names(columns: Sequence[Column]) -> tuple[ByteArray, npt.NDArray[np.int32]]:
    """Return the names of all parts, and where each ends; first 0. Other parts than an object's have none."""
    names: list[bytes] = []
    for column in columns:
        parts = [*column.parts, *column.places]
        names += [name.encode() for name in column.names] or [b""] * len(parts)
    ends = np.cumsum([0, *map(len, names)], dtype=np.int32)
    return np.frombuffer(b"".join(names) or b"\0", np.uint8), ends


def nulls(kind: pa.DataType) -> Make:
    """Make nulls."""
    return lambda filled, number: pa.nulls(filled.rows[number], kind)


def plain(kind: pa.DataType) -> Make:
    """Make values of fixed width."""
    return lambda filled, number: filled.array(number, kind, filled.buffer(number, 1))


def text(kind: pa.DataType) -> Make:
    """Make strings or bytes."""

    def make(filled: Filled, number: int) -> pa.Array:
        ends, text = filled.buffer(number, 1), filled.buffer(number, 2)
        if kind == pa.binary() or np.frombuffer(text, np.uint8).max(initial=0) < _ASCII:
            return filled.array(number, kind, ends, text)
        return filled.array(number, pa.binary(), ends, text).cast(kind)

    return make


def struct(kind: pa.StructType, parts: Mapping[int, int]) -> Make:
    """Make a struct that has only some of its fields; the others are null."""

    def make(filled: Filled, number: int) -> pa.Array:
        rows = filled.rows[number]
        children = [
            filled.column(parts[place]) if place in parts else pa.nulls(rows, field.type)
            for place, field in enumerate(kind)
        ]
        return filled.array(number, kind, children=children)

    return make


def items(kind: pa.DataType, item: int) -> Make:
    """Make a list."""
    return lambda filled, number: filled.array(number, kind, filled.buffer(number, 1), children=[filled.column(item)])


def entries(kind: pa.MapType, key: int, item: int) -> Make:
    """Make a map."""
    fields = [kind.key_field, kind.item_field]

    def make(filled: Filled, number: int) -> pa.Array:
        entries = pa.StructArray.from_arrays([filled.column(key), filled.column(item)], fields=fields)
        return filled.array(number, kind, filled.buffer(number, 1), children=[entries])

    return make

"""Reads Avro with rows.c: the plan of `resolve` as tables for C, and arrays of the columns that C has filled."""

from collections.abc import Callable, Mapping, Sequence
from ctypes import byref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_archiver.records.avro.cursor import Mask
from kafka_archiver.records.avro.library import COUNT, NODE, Kind, Program, library
from kafka_archiver.records.avro.nested import Array, AvroMap, AvroRecord, Branch, Union
from kafka_archiver.records.avro.nodes import (
    AvroDecimals,
    AvroNode,
    AvroText,
    Boolean,
    Enum,
    Fixed,
    Integer,
    Null,
    Real,
    RefusedType,
)
from kafka_archiver.records.avro.uuids import Uuids
from kafka_archiver.records.fields import SET
from kafka_archiver.records.vectors import ByteArray, numbers
from kafka_archiver.values.columns import Int64s

# Columns have 32-bit offsets.
MOST_BYTES = 2**31 - 1
_ALIGNED = 64
# Levels of a schema: C calls itself for each.
_DEEPEST = 64
_NOWHERE = -1
# A column gets so much more memory than it needed so far, in proportion.
_SPARE = 1.25
_ASCII = 0x80


class NotCompiledError(Exception):
    """C does not read such a type."""


# Makes the array of the node of a number.
_Make = Callable[["_Filled", int], pa.Array]


@dataclass
class _Column:
    """A node for C, and what makes its array. `width`: bytes of a row; `known`: see `struct node`."""

    kind: Kind
    make: _Make
    width: int = 0
    size: int = 0
    low: int = 0
    high: int = 0
    parts: Sequence[int] = ()
    places: Sequence[int] = ()
    known: ByteArray | None = None
    nullable: bool = False


class _Filled:
    """What C has filled. `places` and `sizes`: where each column has its validity, its data and its bytes."""

    def __init__(
        self, columns: Sequence[_Column], arena: pa.Buffer, places: Int64s, sizes: Int64s, counts: npt.NDArray[Any]
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

    def made(self, number: int) -> pa.Array:
        """Return the array of a column. :raises ArrowInvalid: a string is not UTF-8."""
        return self._columns[number].make(self, number)


class CompiledRows:
    """Reads records by a plan of `resolve`. :raises NotCompiledError: it has a type that C does not read."""

    def __init__(self, library: SimpleNamespace, node: AvroNode) -> None:
        self._library = library
        self._columns = _columns(node)
        self._parts, self._nodes = _tables(self._columns)
        self._bits = self._nodes["kind"] == Kind.BOOLEAN
        self._has_ends = np.isin(self._nodes["kind"], (Kind.TEXT, Kind.LIST, Kind.MAP))
        self._is_text = self._nodes["kind"] == Kind.TEXT
        self._nullable = np.array([column.nullable for column in self._columns])
        # Of each column the rows a record beyond one, and the bytes a byte.
        self._row_rates, self._byte_rates = np.zeros((2, len(self._columns)))

    def read(self, data: ByteArray, starts: Int64s, ends: Int64s) -> tuple[pa.Array, Mask] | None:
        """Return the column of the records that are not bad, and which are bad; None: some text is not UTF-8."""
        records, size = len(starts), len(data)
        counts, kept = np.zeros((2, len(self._columns)), COUNT)
        bad = np.zeros(records, np.bool_)
        rows = records + (self._row_rates * records).astype(np.int64)
        used = (self._byte_rates * size).astype(np.int64)
        addresses = [array.ctypes.data for array in (data, starts, ends)]
        while True:
            arena, places, nodes = self._allocate(rows, used)
            counts[:] = 0
            program = Program(nodes.ctypes.data, self._parts.ctypes.data, counts.ctypes.data)
            self._library.rows(*addresses, records, byref(program), len(nodes), kept.ctypes.data, bad.ctypes.data)
            if (counts["rows"] <= rows).all() and (counts["used"] <= used)[self._is_text].all():
                break
            rows, used = np.maximum(rows, counts["rows"]), np.maximum(used, counts["used"])
            self._row_rates = np.maximum(self._row_rates, _SPARE * (counts["rows"] - records) / records)
            self._byte_rates = np.maximum(self._byte_rates, _SPARE * counts["used"] / size)
        sizes = self._sizes(counts["rows"], counts["used"])
        try:
            return _Filled(self._columns, arena, places, sizes, counts).made(0), bad
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


def compiled(node: AvroNode) -> CompiledRows | None:
    """Return what reads records in C; None: rows.c is not compiled, or does not read such a type."""
    functions = library()
    try:
        return CompiledRows(functions, node) if functions else None
    except NotCompiledError:
        return None


def _tables(columns: Sequence[_Column]) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
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


def _columns(node: AvroNode) -> list[_Column]:
    """Return the nodes for C; the first is the record's. :raises NotCompiledError: C does not read such a type."""
    columns: dict[int, _Column] = {}

    def add(node: AvroNode, nullable: bool = False, depth: int = 0) -> int:
        if depth > _DEEPEST:
            raise NotCompiledError
        number = len(columns)
        columns[number] = _Column(Kind.REFUSED, _nulls(node.kind))
        column = _leaf(node) or _nested(node, lambda part, more=False: add(part, nullable or more, depth + 1))
        column.nullable |= nullable
        columns[number] = column
        return number

    add(node)
    return list(columns.values())


def _leaf(node: AvroNode) -> _Column | None:
    """Return a node without parts."""
    kind = node.kind
    match node:
        case Null():
            return _Column(Kind.NOTHING, _nulls(kind))
        case RefusedType():
            return _Column(Kind.REFUSED, _nulls(kind))
        case Boolean():
            return _Column(Kind.BOOLEAN, _plain(kind))
        case Integer():
            low, high = node.bounds
            is_real = pa.types.is_floating(kind)
            of_kind = Kind.INTEGER_AS_REAL if is_real else Kind.INTEGER
            return _Column(of_kind, _plain(kind), kind.bit_width // 8, low=low, high=high)
        case Real():
            return _Column(Kind.REAL, _plain(kind), kind.bit_width // 8, node.size)
        case AvroText():
            return _Column(Kind.TEXT, _text(kind), 4)
        case Fixed() if node.size:
            return _Column(Kind.FIXED, _plain(kind), node.size, node.size)
        case AvroDecimals() if pa.types.is_decimal128(kind):
            size = -1 if node.size is None else node.size
            small = node.limit if node.limit < 1 << 64 else 0
            # The same 64 bits.
            low = small - (small >> 63 << 64)
            return _Column(Kind.DECIMAL, _plain(kind), 16, size, low, min(node.limit >> 64, (1 << 63) - 1))
        case Uuids():
            return _Column(Kind.UUID, _plain(kind), 16)
        case Enum():
            known = np.ascontiguousarray(~node.unknown).astype(np.uint8)
            return _Column(Kind.SYMBOL, _symbols(node.array), 4, len(known), known=known)
        case _:
            return None


def _nested(node: AvroNode, add: Callable[..., int]) -> _Column:
    """Return a node with parts. :param add: adds a part; with a second argument, one that may be null."""
    match node:
        case AvroRecord():
            parts = [add(part) for _, part, _ in node.parts]
            return _Column(Kind.RECORD, _record(node, parts), parts=parts)
        case Branch():
            part = add(node.node)
            return _Column(Kind.RECORD, _struct(node.kind, {node.place: part}), parts=[part])
        case Array() if node.most is None:
            part = add(node.item)
            return _Column(Kind.LIST, _items(node.kind, part), 4, parts=[part])
        case AvroMap():
            parts = [add(node.key), add(node.item)]
            return _Column(Kind.MAP, _entries(node.kind, *parts), 4, parts=parts)
        case Union():
            return _union(node, add)
        case _:
            raise NotCompiledError


def _union(node: Union, add: Callable[..., int]) -> _Column:
    places: dict[int, int] = {}
    branches: list[int] = []
    for branch, place in node.branches:
        if place in places:
            raise NotCompiledError
        number = add(branch, True)
        branches += [number, _NOWHERE if place is None else len(places)]
        if place is not None:
            places[place] = number
    if node.is_struct:
        make = _struct(node.kind, places)
        return _Column(Kind.UNION, make, parts=branches, places=[*places.values()], nullable=True)
    if not places:
        raise NotCompiledError
    [number] = places.values()
    return _Column(Kind.OPTIONAL, lambda filled, _: filled.made(number), parts=branches, places=[number])


def _nulls(kind: pa.DataType) -> _Make:
    return lambda filled, number: pa.nulls(filled.rows[number], kind)


def _plain(kind: pa.DataType) -> _Make:
    return lambda filled, number: filled.array(number, kind, filled.buffer(number, 1))


def _text(kind: pa.DataType) -> _Make:
    def make(filled: _Filled, number: int) -> pa.Array:
        ends, text = filled.buffer(number, 1), filled.buffer(number, 2)
        if kind == pa.binary() or np.frombuffer(text, np.uint8).max(initial=0) < _ASCII:
            return filled.array(number, kind, ends, text)
        return filled.array(number, pa.binary(), ends, text).cast(kind)

    return make


def _symbols(symbols: pa.Array) -> _Make:
    return lambda filled, number: symbols.take(filled.array(number, pa.int32(), filled.buffer(number, 1)))


def _record(node: AvroRecord, parts: Sequence[int]) -> _Make:
    """Make the fields; also those that the column does not have, for their text has to be UTF-8."""

    def make(filled: _Filled, number: int) -> pa.Array:
        rows = filled.rows[number]
        made = [(place, filled.made(part)) for part, (_, _, place) in zip(parts, node.parts, strict=True)]
        if node.kind == SET:
            return filled.array(number, SET, pa.py_buffer(np.full(-(-rows // 8), 0xFF, np.uint8)))
        children = {place: array for place, array in made if place is not None}
        for place, constant in node.constants.items():
            children[place] = constant.take(numbers(np.zeros(rows, np.int64)))
        return filled.array(number, node.kind, children=[children[place] for place in range(len(children))])

    return make


def _struct(kind: pa.StructType, parts: Mapping[int, int]) -> _Make:
    """Make a struct that has only some of its fields; the others are null."""

    def make(filled: _Filled, number: int) -> pa.Array:
        rows = filled.rows[number]
        children = [
            filled.made(parts[place]) if place in parts else pa.nulls(rows, field.type)
            for place, field in enumerate(kind)
        ]
        return filled.array(number, kind, children=children)

    return make


def _items(kind: pa.DataType, item: int) -> _Make:
    return lambda filled, number: filled.array(number, kind, filled.buffer(number, 1), children=[filled.made(item)])


def _entries(kind: pa.MapType, key: int, item: int) -> _Make:
    fields = [kind.key_field, kind.item_field]

    def make(filled: _Filled, number: int) -> pa.Array:
        entries = pa.StructArray.from_arrays([filled.made(key), filled.made(item)], fields=fields)
        return filled.array(number, kind, filled.buffer(number, 1), children=[entries])

    return make

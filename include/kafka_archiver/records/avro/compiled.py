"""The plan of `resolve` as the columns that rows.c fills."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

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
from kafka_archiver.records.rows.filled import (
    DEEPEST,
    Column,
    CompiledRows,
    Filled,
    Make,
    NotCompiledError,
    entries,
    items,
    nulls,
    plain,
    struct,
    text,
)
from kafka_archiver.records.rows.library import Kind, library
from kafka_archiver.records.vectors import numbers

_NOWHERE = -1


def compiled(node: AvroNode) -> CompiledRows | None:
    """Return what reads records in C; None: rows.c is not compiled, or does not read such a type."""
    functions = library()
    try:
        return CompiledRows(functions, _columns(node)) if functions else None
    except NotCompiledError:
        return None


def _columns(node: AvroNode) -> list[Column]:
    """Return the nodes for C; the first is the record's. :raises NotCompiledError: C does not read such a type."""
    columns: dict[int, Column] = {}

    def add(node: AvroNode, nullable: bool = False, depth: int = 0) -> int:
        if depth > DEEPEST:
            raise NotCompiledError
        number = len(columns)
        columns[number] = Column(Kind.REFUSED, nulls(node.kind))
        column = _leaf(node) or _nested(node, lambda part, more=False: add(part, nullable or more, depth + 1))
        column.nullable |= nullable
        columns[number] = column
        return number

    add(node)
    return list(columns.values())


def _leaf(node: AvroNode) -> Column | None:
    """Return a node without parts."""
    kind = node.kind
    match node:
        case Null():
            return Column(Kind.NOTHING, nulls(kind))
        case RefusedType():
            return Column(Kind.REFUSED, nulls(kind))
        case Boolean():
            return Column(Kind.BOOLEAN, plain(kind))
        case Integer():
            low, high = node.bounds
            is_real = pa.types.is_floating(kind)
            of_kind = Kind.INTEGER_AS_REAL if is_real else Kind.INTEGER
            return Column(of_kind, plain(kind), kind.bit_width // 8, low=low, high=high)
        case Real():
            return Column(Kind.REAL, plain(kind), kind.bit_width // 8, node.size)
        case AvroText():
            return Column(Kind.TEXT, text(kind), 4)
        case Fixed() if node.size:
            return Column(Kind.FIXED, plain(kind), node.size, node.size)
        case AvroDecimals() if pa.types.is_decimal128(kind):
            size = -1 if node.size is None else node.size
            small = node.limit if node.limit < 1 << 64 else 0
            # The same 64 bits.
            low = small - (small >> 63 << 64)
            return Column(Kind.DECIMAL, plain(kind), 16, size, low, min(node.limit >> 64, (1 << 63) - 1))
        case Uuids():
            return Column(Kind.UUID, plain(kind), 16)
        case Enum():
            known = np.ascontiguousarray(~node.unknown).astype(np.uint8)
            return Column(Kind.SYMBOL, _symbols(node.array), 4, len(known), known=known)
        case _:
            return None


def _nested(node: AvroNode, add: Callable[..., int]) -> Column:
    """Return a node with parts. :param add: adds a part; with a second argument, one that may be null."""
    match node:
        case AvroRecord():
            parts = [add(part) for _, part, _ in node.parts]
            return Column(Kind.RECORD, _record(node, parts), parts=parts)
        case Branch():
            part = add(node.node)
            return Column(Kind.RECORD, struct(node.kind, {node.place: part}), parts=[part])
        case Array() if node.most is None:
            part = add(node.item)
            return Column(Kind.LIST, items(node.kind, part), 4, parts=[part])
        case AvroMap():
            parts = [add(node.key), add(node.item)]
            return Column(Kind.MAP, entries(node.kind, *parts), 4, parts=parts)
        case Union():
            return _union(node, add)
        case _:
            raise NotCompiledError


def _union(node: Union, add: Callable[..., int]) -> Column:
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
        make = struct(node.kind, places)
        return Column(Kind.UNION, make, parts=branches, places=[*places.values()], nullable=True)
    if not places:
        raise NotCompiledError
    [number] = places.values()
    return Column(Kind.OPTIONAL, lambda filled, _: filled.column(number), parts=branches, places=[number])


def _symbols(symbols: pa.Array) -> Make:
    return lambda filled, number: symbols.take(filled.array(number, pa.int32(), filled.buffer(number, 1)))


def _record(node: AvroRecord, parts: Sequence[int]) -> Make:
    """Make the fields; also those that the column does not have, for their text has to be UTF-8."""

    def make(filled: Filled, number: int) -> pa.Array:
        rows = filled.rows[number]
        columns = [(place, filled.column(part)) for part, (_, _, place) in zip(parts, node.parts, strict=True)]
        if node.kind == SET:
            return filled.array(number, SET, pa.py_buffer(np.full(-(-rows // 8), 0xFF, np.uint8)))
        children = {place: array for place, array in columns if place is not None}
        for place, constant in node.constants.items():
            children[place] = constant.take(numbers(np.zeros(rows, np.int64)))
        return filled.array(number, node.kind, children=[children[place] for place in range(len(children))])

    return make

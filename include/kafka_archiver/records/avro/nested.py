"""Readers of values that have parts: records, arrays, maps and unions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_archiver.records.avro.cursor import BadDatumError, Cursor, Datum
from kafka_archiver.records.avro.nodes import AvroNode, AvroText
from kafka_archiver.records.fields import SET
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import Int64s

# Arrays are read item by item, the k-th of all records at once: a record with a longer array is read alone.
_MOST_ITEMS = 64
# Items that take no bytes, of all blocks of one array: a few bytes can declare 2^63 of them.
_MOST_WITHOUT_BYTES = 65_536


class AvroRecord:
    """Reads the fields in the writer's order. Of a record without fields it says that it is there.

    :param parts: the writer's fields: name, node, and the place in the struct; None for a field that it does not have.
    :param defaults: by place, the value of the fields that the writer does not have, as `pa.array` takes it.
    """

    def __init__(
        self, kind: pa.DataType, parts: Sequence[tuple[str, AvroNode, int | None]], defaults: dict[int, Any]
    ) -> None:
        self.kind, self.parts, self._defaults = kind, parts, defaults
        self._names = [kind[place].name for place in range(kind.num_fields)]
        self.constants = {place: pa.array([value], kind[place].type) for place, value in defaults.items()}

    def column(self, at: Cursor) -> pa.Array:
        children: list[pa.Array] = [None] * self.kind.num_fields
        for _, node, place in self.parts:
            column = node.column(at)
            if place is not None:
                children[place] = column
        for place, constant in self.constants.items():
            children[place] = constant.take(numbers(np.zeros(len(at), np.int64)))
        if not children:
            return pa.array([True] * len(at), SET)
        return pa.StructArray.from_arrays(children, fields=list(self.kind))

    def value(self, at: Datum) -> dict[str, Any] | bool:
        fields = {self._names[place]: value for place, value in self._defaults.items()}
        for name, node, place in self.parts:
            try:
                value = node.value(at)
            except BadDatumError as error:
                error.path.insert(0, name)
                raise
            if place is not None:
                fields[self._names[place]] = value
        return fields if self._names else True


class Array:
    """Reads the items, in blocks.

    :param no_bytes: an item takes no bytes.
    """

    def __init__(self, kind: pa.DataType, item: AvroNode, no_bytes: bool = False) -> None:
        self.kind, self.item, self.most = kind, item, _MOST_WITHOUT_BYTES if no_bytes else None

    def column(self, at: Cursor) -> pa.Array:
        rows, [items] = _items(at, [self.item], self.most)
        return pa.ListArray.from_arrays(_offsets(rows, len(at)), items, self.kind)

    def value(self, at: Datum) -> list[Any]:
        return [self.item.value(at) for _ in _count(at, self.most)]


class AvroMap:
    """Reads the entries, in blocks. Of entries with the same key, the last one counts."""

    def __init__(self, kind: pa.DataType, value: AvroNode) -> None:
        self.kind, self.key, self.item = kind, AvroText(pa.string()), value

    def column(self, at: Cursor) -> pa.Array:
        rows, [keys, values] = _items(at, [self.key, self.item])
        # Records with a key twice are read one by one.
        codes = keys.dictionary_encode().indices.cast(pa.int64()).to_numpy(zero_copy_only=False)
        pairs = np.sort(rows * (len(rows) + 1) + codes)
        twice = pairs[1:][pairs[1:] == pairs[:-1]] // (len(rows) + 1)
        at.refuse(np.isin(np.arange(len(at)), twice))
        return pa.MapArray.from_arrays(_offsets(rows, len(at)), keys, values, self.kind)

    def value(self, at: Datum) -> list[tuple[Any, Any]]:
        return list({self.key.value(at): self.item.value(at) for _ in _count(at)}.items())


class Union:
    """Reads the number of a branch, then the branch.

    :param branches: of the writer's union: node, and the place in the struct of branches; None for null.
    """

    def __init__(self, kind: pa.DataType, branches: Sequence[tuple[AvroNode, int | None]], is_struct: bool) -> None:
        self.kind, self.branches, self.is_struct = kind, branches, is_struct
        self._names = [field.name for field in kind] if is_struct else []

    def column(self, at: Cursor) -> pa.Array:
        numbers_found = at.longs()
        wrong = (numbers_found < 0) | (numbers_found >= len(self.branches))
        if wrong.any():
            at.refuse(wrong)
        by_branch: dict[int | None, list[tuple[Int64s, pa.Array]]] = {}
        for number, (node, place) in enumerate(self.branches):
            rows = np.flatnonzero((numbers_found == number) & ~wrong)
            if len(rows) == len(at) and not self.is_struct and place is not None:
                return node.column(at)
            if len(rows):
                part = at.part(rows)
                by_branch.setdefault(place, []).append((rows, node.column(part)))
                at.join(rows, part)
        nulls = by_branch.pop(None, [])
        if not self.is_struct:
            return _scattered(by_branch.get(0, []), len(at), self.kind)
        columns = [_scattered(by_branch.get(place, []), len(at), field.type) for place, field in enumerate(self.kind)]
        is_null = np.zeros(len(at), np.bool_)
        for rows, _ in nulls:
            is_null[rows] = True
        mask = pa.array(is_null.tolist(), pa.bool_()) if nulls else None
        return pa.StructArray.from_arrays(columns, fields=list(self.kind), mask=mask)

    def value(self, at: Datum) -> Any:
        number = at.long()
        if not 0 <= number < len(self.branches):
            raise BadDatumError(f"a union has no branch {number}, expected 0..{len(self.branches) - 1}")
        node, place = self.branches[number]
        value = node.value(at)
        return {self._names[place]: value} if self.is_struct and place is not None else value


class Branch:
    """Reads a value that the writer has without a union, as a branch of the union that the run writes."""

    def __init__(self, kind: pa.StructType, node: AvroNode, place: int) -> None:
        self.kind, self.node, self.place = kind, node, place

    def column(self, at: Cursor) -> pa.Array:
        children = [pa.nulls(len(at), field.type) for field in self.kind]
        children[self.place] = self.node.column(at)
        return pa.StructArray.from_arrays(children, fields=list(self.kind))

    def value(self, at: Datum) -> dict[str, Any]:
        return {self.kind[self.place].name: self.node.value(at)}


def _count(at: Datum, most: int | None = None) -> Iterator[int]:
    """Yield once for each item of the blocks.

    :param most: the most items of the array, if they take no bytes.
    """
    left = most
    while count := at.long():
        if count < 0:
            count = -count
            at.long()  # the block's bytes
        if left is None and count > at.left():
            raise BadDatumError(f"a block has {count} items in {at.left()} bytes")
        if left is not None:
            left -= count
            if left < 0:
                raise BadDatumError(f"an array has more than {most} items that take no bytes")
        yield from range(count)


def _items(at: Cursor, nodes: Sequence[AvroNode], most: int | None = None) -> tuple[Int64s, list[pa.Array]]:
    """Return the items of all records, in the order of the records: the record of each, and for each node its values.

    :param most: the most items of an array, if they take no bytes.
    """
    left, sizes = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    open_ = np.arange(len(at))
    rows: list[Int64s] = [np.empty(0, np.int64)]
    arrays = [[pa.nulls(0, node.kind)] for node in nodes]
    while True:
        ended = open_[left[open_] == 0]
        if len(ended):
            part = at.part(ended)
            left[ended] = _block(part, most)
            at.join(ended, part)
        open_ = open_[left[open_] > 0]
        if not len(open_):
            break
        part = at.part(open_)
        part.refuse(sizes[open_] >= _MOST_ITEMS)
        for node, pieces in zip(nodes, arrays, strict=True):
            pieces.append(node.column(part))
        at.join(open_, part)
        rows.append(open_)
        sizes[open_] += 1
        left[open_] -= 1
        open_ = open_[~part.bad]
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")
    return every[order], [pa.concat_arrays(pieces).take(numbers(order)) for pieces in arrays]


def _block(part: Cursor, most: int | None) -> Int64s:
    """The number of items in the next block; 0 after the last one."""
    count = part.longs()
    sized = np.flatnonzero(count < 0)
    if len(sized):
        inner = part.part(sized)
        inner.longs()  # the block's bytes
        part.join(sized, inner)
    count = np.abs(count)
    part.refuse((count > (part.left() if most is None else most)) | (count < 0))
    return np.where(part.bad, 0, count)


def _offsets(rows: Int64s, count: int) -> pa.Array:
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return pa.Array.from_buffers(pa.int32(), count + 1, [None, pa.py_buffer(ends.astype(np.int32))])


def _scattered(pieces: Sequence[tuple[Int64s, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """The values at their rows, null elsewhere."""
    if not pieces:
        return pa.nulls(count, kind)
    values = pa.concat_arrays([values for _, values in pieces])
    places = np.zeros(count, np.int64)
    present = np.zeros(count, np.bool_)
    rows = np.concatenate([rows for rows, _ in pieces])
    places[rows], present[rows] = np.arange(len(rows)), True
    valid = pa.py_buffer(np.packbits(present, bitorder="little"))
    return values.take(pa.Array.from_buffers(pa.int64(), count, [valid, pa.py_buffer(places)]))

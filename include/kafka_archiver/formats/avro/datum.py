"""Avro binary encoding of records, column by column. An encoder that works record by record takes four times the CPU.

Byte tables: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.columns import Int64s
from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.shared.records import is_place
from kafka_archiver.formats.vectors import Piece, fixed, grouped, joined, large_binaries, lengths

_BITS = 7
# The smallest number of two bytes, of three bytes, and so on.
_LONGER = np.array([1 << bits for bits in range(_BITS, 64, _BITS)], np.uint64)
_END_OF_ARRAY = b"\x00"
# Branches 0 and 1 of a union [null, value], encoded as a long.
_NULL, _VALUE = b"\x00", b"\x02"


def long(value: int) -> bytes:
    """One number: zigzag, then seven bits a byte, the lowest first."""
    encoded: bytes = longs(np.array([value], np.int64))[0].as_py()
    return encoded


def longs(values: Int64s) -> pa.LargeBinaryArray:
    """Each number as `long` encodes it."""
    zigzag = (values.astype(np.uint64) << np.uint64(1)) ^ (values >> np.int64(63)).astype(np.uint64)
    lengths = np.searchsorted(_LONGER, zigzag, side="right") + 1
    places = np.arange(lengths.max(initial=1))
    digits = (zigzag[:, None] >> (places * _BITS).astype(np.uint64)).astype(np.uint8) & 0x7F
    digits |= np.where(places < lengths[:, None] - 1, 0x80, 0).astype(np.uint8)
    return large_binaries(np.concatenate([[0], np.cumsum(lengths)]), digits[places < lengths[:, None]])


def datums(batch: pa.RecordBatch, schema: pa.Schema, topic: str, partition: int) -> pa.LargeBinaryArray:
    """Each record of a normalised batch as one datum of a schema, which `schema.stored` gives.

    :raises IntegrityError: a column that is not nullable has nulls.
    """
    place = {"topic": _text(topic), "partition": long(partition)}
    pieces: list[Piece] = []
    for field in schema:
        if is_place(field):
            pieces.append(place[field.name])
        else:
            pieces += _column(batch.column(field.name), field)
    return joined(*pieces)


def _column(values: pa.Array, field: pa.Field) -> list[Piece]:
    """The pieces of a column. A nullable column is a union: its branch, then the value's pieces (null for a null)."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_binary(values.type):
        values = values.cast(pa.large_binary())
    if not field.nullable:
        if values.null_count:
            raise IntegrityError(f"the records do not fit the object's schema: found nulls in {field.name}")
        return _values(values, field.type)
    if not values.null_count:
        return [_VALUE, *_values(values, field.type)]
    valid = values.is_valid()
    branch = pc.if_else(valid, _scalar(_VALUE), _scalar(_NULL))
    if pa.types.is_nested(values.type):
        # Filtered: Arrow may hold anything in the place of a null.
        places = np.cumsum(valid.to_numpy(zero_copy_only=False)) - 1
        whole = joined(*_values(values.filter(valid), field.type))
        return [branch, whole.take(pc.if_else(valid, pa.array(places), pa.scalar(None, pa.int64())))]
    absent = pa.scalar(None, pa.large_binary())
    return [branch, *[p if p is values else pc.if_else(valid, p, absent) for p in _values(values, field.type)]]


def _values(values: pa.Array, kind: pa.DataType) -> list[Piece]:
    """The pieces of values; for a null, of whatever Arrow holds in its place.

    :param kind: the type by the schema: only the schema says which children are nullable.
    """
    if pa.types.is_large_binary(values.type):
        return [longs(lengths(values)), values]
    if pa.types.is_struct(kind):
        return [piece for field, child in zip(kind, values.flatten(), strict=True) for piece in _column(child, field)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        counts = values.value_lengths().to_numpy().astype(np.int64)
        items = joined(*_column(values.flatten(), kind.value_field))
        # An Avro array: one block with all items, then an empty block.
        return [pc.if_else(pa.array(counts > 0), longs(counts), _scalar(b"")), grouped(items, counts), _END_OF_ARRAY]
    if pa.types.is_boolean(kind):
        return [_fixed(values.cast(pa.uint8()))]
    if pa.types.is_floating(kind):
        return [_fixed(values)]
    return [longs(values.cast(pa.int64()).fill_null(0).to_numpy())]


def _fixed(numbers: pa.Array) -> pa.LargeBinaryArray:
    """Numbers of fixed width, little-endian."""
    return fixed(numbers.fill_null(0).to_numpy())


def _text(value: str) -> bytes:
    encoded = value.encode()
    return long(len(encoded)) + encoded


def _scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.large_binary())

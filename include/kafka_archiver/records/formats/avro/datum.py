"""Avro binary encoding of records, column by column. An encoder that works record by record takes four times the CPU.

Byte tables: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.avro.schema import entries, symbols
from kafka_archiver.records.formats.shared.records import is_place, kafkas
from kafka_archiver.records.formats.shared.texts import uuids
from kafka_archiver.records.vectors import (
    Piece,
    fixed,
    grouped,
    joined,
    large_binaries,
    large_binary,
    lengths,
    raw,
    spread,
)
from kafka_archiver.values.columns import Int64s

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
    if zigzag.max(initial=0) <= 0x7F:
        return fixed(zigzag.astype(np.uint8))
    lengths = np.searchsorted(_LONGER, zigzag, side="right") + 1
    places = np.arange(lengths.max(initial=1))
    digits = (zigzag[:, None] >> (places * _BITS).astype(np.uint64)).astype(np.uint8) & 0x7F
    digits |= np.where(places < lengths[:, None] - 1, 0x80, 0).astype(np.uint8)
    return large_binaries(np.concatenate([[0], np.cumsum(lengths)]), digits[places < lengths[:, None]])


def datums(batch: pa.RecordBatch, schema: pa.Schema, topic: str, partition: int) -> pa.LargeBinaryArray:
    """Each record of a normalised batch as one datum of a schema, which `schema.stored` gives.

    :raises IntegrityError: a column that is not nullable has nulls, or a value is not of its type.
    """
    place = {"topic": _text(topic), "partition": long(partition)}
    pieces: list[Piece] = []
    for field in schema:
        if is_place(field):
            pieces.append(place[kafkas(field) or ""])
        else:
            pieces += _column(batch.column(field.name), field)
    return joined(batch.num_rows, pieces)


def _column(values: pa.Array, field: pa.Field) -> list[Piece]:
    """The pieces of a column. A nullable column is a union: its branch, then the value's pieces (null for a null)."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_binary(values.type):
        values = values.cast(pa.large_binary())
    if not field.nullable:
        if values.null_count:
            raise IntegrityError(f"the records do not fit the object's schema: found nulls in {field.name}")
        return _values(values, field)
    if not values.null_count:
        return [_VALUE, *_values(values, field)]
    valid = values.is_valid()
    branch = pc.if_else(valid, large_binary(_VALUE), large_binary(_NULL))
    if pa.types.is_nested(values.type):
        # Filtered: Arrow may hold anything in the place of a null.
        whole = joined(len(values) - values.null_count, _values(values.filter(valid), field))
        return [branch, spread(whole, valid.to_numpy(zero_copy_only=False))]
    absent = pa.scalar(None, pa.large_binary())
    pieces: list[Piece] = [branch]
    for piece in _values(values, field):
        present = large_binary(piece) if isinstance(piece, bytes) else piece
        pieces.append(piece if piece is values else pc.if_else(valid, present, absent))
    return pieces


def _values(values: pa.Array, field: pa.Field) -> list[Piece]:
    """The pieces of values; for a null, of whatever Arrow holds in its place.

    :param field: by the schema: only the schema says which children are nullable.
    """
    kind = field.type
    if (names := symbols(field)) is not None:
        return [longs(_indexes(values, names, field.name))]
    if pa.types.is_large_binary(values.type):
        return [longs(lengths(values)), values]
    if pa.types.is_struct(kind):
        return [piece for child, array in zip(kind, values.flatten(), strict=True) for piece in _column(array, child)]
    if pa.types.is_map(kind):
        return _values(values.cast(entries(values.type)), pa.field(field.name, entries(kind)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        counts = values.value_lengths().to_numpy().astype(np.int64)
        items = joined(int(counts.sum()), _column(values.flatten(), kind.value_field))
        # An Avro array: one block with all items, then an empty block.
        sizes = pc.if_else(pa.array(counts > 0), longs(counts), large_binary(b""))
        return [sizes, grouped(items, counts), _END_OF_ARRAY]
    if pa.types.is_boolean(kind):
        return [_numbers(values.cast(pa.uint8()))]
    if pa.types.is_floating(kind):
        return [_numbers(values)]
    if pa.types.is_uint64(kind):
        return _decimal(values.cast(pa.decimal128(20, 0)), field.name)
    if pa.types.is_decimal(kind):
        return _decimal(values, field.name)
    if kind == pa.uuid():
        return [long(36), uuids(values)]
    if pa.types.is_fixed_size_binary(kind):
        return [fixed(raw(values))]
    if pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return [longs(values.cast(pa.int64()).fill_null(0).to_numpy())]


def _indexes(values: pa.LargeBinaryArray, names: list[str], column: str) -> Int64s:
    """The numbers of an enum's symbols."""
    positions = pc.index_in(values, pa.array([name.encode() for name in names], pa.large_binary()))
    if positions.null_count != values.null_count:
        raise IntegrityError(f"the records do not fit the object's schema: {column} is none of {', '.join(names)}")
    indexes: Int64s = positions.fill_null(0).to_numpy().astype(np.int64)
    return indexes


def _decimal(values: pa.Array, column: str) -> list[Piece]:
    """Unscaled numbers in two's complement, big-endian, all as long as the largest of the precision."""
    size = ((10**values.type.precision).bit_length() + 8) // 8
    # Arrow is little-endian.
    digits = raw(values)[:, ::-1]
    dropped = digits.shape[1] - size
    if dropped > 0:
        sign = np.where(digits[:, dropped] >> 7, 255, 0).astype(np.uint8)
        wrong = (digits[:, :dropped] != sign[:, None]).any(axis=1)
        if values.null_count:
            wrong &= values.is_valid().to_numpy(zero_copy_only=False)
        if wrong.any():
            raise IntegrityError(f"the records do not fit the object's schema: {column} exceeds {values.type}")
        digits = digits[:, dropped:]
    return [long(digits.shape[1]), fixed(digits)]


def _numbers(numbers: pa.Array) -> pa.LargeBinaryArray:
    """Numbers of fixed width, little-endian."""
    return fixed(numbers.fill_null(0).to_numpy())


def _text(value: str) -> bytes:
    encoded = value.encode()
    return long(len(encoded)) + encoded

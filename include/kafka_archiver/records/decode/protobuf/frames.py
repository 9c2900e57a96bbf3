"""Confluent's message indexes, between the schema id and the message.

They say which message of the file this is: how many indexes, then the indexes of the message, of the message inside it,
and so on, as zigzag varints. The single byte 0 stands for the file's first message.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor

from kafka_archiver.records.vectors import bounds, slices

_DEEPEST = 64


def indexes(message: Descriptor) -> tuple[int, ...]:
    """The indexes of a message in its file."""
    outer = message.containing_type
    if outer:
        return (*indexes(outer), [inner.name for inner in outer.nested_types].index(message.name))
    return (list(message.file.message_types_by_name).index(message.name),)


def prefixes(path: tuple[int, ...]) -> list[bytes]:
    """The bytes that say these indexes, the usual ones first."""
    long = b"".join(varint(number * 2) for number in (len(path), *path))
    return [b"\0", long] if path == (0,) else [long]


def without_indexes(
    data: pa.Array, path: tuple[int, ...], other_messages: Mapping[tuple[int, ...], str], column: str
) -> tuple[pa.Array, dict[int, str]]:
    """The messages without their indexes; why, by row, for those that are another message or have none.

    :param other_messages: the names of the file's messages by their indexes.
    """
    whole, starts, ends = bounds(data)
    sizes, missing = np.zeros(len(data), np.int64), np.ones(len(data), np.bool_)
    for prefix in prefixes(path):
        has_prefix = missing & pc.starts_with(data, pattern=prefix).to_numpy(zero_copy_only=False)
        sizes[has_prefix], missing = len(prefix), missing & ~has_prefix
    reasons = {}
    for row in np.flatnonzero(missing).tolist():
        other = _read(data[row].as_py())
        if not other:
            reasons[row] = "the bytes have no message indexes after the schema id"
            continue
        reasons[row] = f"the message has the indexes {list(other)}, expected {list(path)}"
        if other in other_messages:
            name = other_messages[other]
            reasons[row] += (
                f": it is {name}, not {other_messages[path]}; to decode {name}, set `source.{column}.message: {name}`"
            )
    return slices(whole, np.where(missing, ends, starts + sizes), ends), reasons


def varint(number: int) -> bytes:
    """A number of Protobuf's: seven bits a byte, the lowest ones first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _read(value: bytes) -> tuple[int, ...]:
    """The indexes at the start of these bytes; empty if there are none."""
    numbers, number, shift = [], 0, 0
    for byte in value[: 10 * _DEEPEST]:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte > 0x7F:
            continue
        numbers.append((number >> 1) ^ -(number & 1))
        number = shift = 0
        if numbers[0] == 0:
            return (0,)
        if len(numbers) > numbers[0]:
            return tuple(numbers[1:])
    return ()

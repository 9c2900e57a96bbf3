"""UUIDs that are strings on the wire, as Avro's specification has them; the column has their 16 bytes."""

import re

import numpy as np
import pyarrow as pa

from kafka_archiver.records.avro.cursor import BadDatumError, Cursor, Datum
from kafka_archiver.records.avro.nodes import typed

_LENGTH = 36
_DASHES = np.array([8, 13, 18, 23])
_PLACES = np.delete(np.arange(_LENGTH), _DASHES)
_TEXT = re.compile(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# The number of a hexadecimal digit by its byte.
_NONE = 255
_DIGITS = np.full(256, _NONE, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


class Uuids:
    """Reads a string like `123e4567-e89b-12d3-a456-426614174000`."""

    kind = pa.binary(16)

    def column(self, at: Cursor) -> pa.Array:
        start, end = at.sized()
        at.refuse(end - start != _LENGTH)
        # Behind a bad record's place there may be fewer bytes.
        places = np.minimum(np.where(at.bad, 0, start)[:, None] + np.arange(_LENGTH), len(at.data) - 1)
        text = at.data[places]
        digits = _DIGITS[text[:, _PLACES]]
        at.refuse((text[:, _DASHES] != ord("-")).any(axis=1) | (digits == _NONE).any(axis=1))
        return typed(digits[:, ::2] << 4 | digits[:, 1::2], self.kind)

    def value(self, at: Datum) -> bytes:
        return parse(at.sized())


def parse(text: bytes) -> bytes:
    """The 16 bytes.

    :raises BadDatumError: it is no UUID.
    """
    if not _TEXT.fullmatch(text):
        raise BadDatumError(f"found {text[:_LENGTH]!r}, expected a UUID of {_LENGTH} characters")
    return bytes.fromhex(text.replace(b"-", b"").decode())

"""Values with their lengths, as in Kafka's protocol: https://kafka.apache.org/protocol#protocol_types (BYTES)."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.formats.shared.joined import values_of
from kafka_archiver.records.vectors import fixed, joined, lengths, text_of

_HEAD = 4


def framed(batch: pa.RecordBatch) -> Buffer:
    """Each value after its length, 4 bytes, big-endian; -1 for null."""
    values = batch.column("value").cast(pa.large_binary())
    sizes = np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths(values), -1)
    text, _ = text_of(joined(len(values), [fixed(sizes.astype(">i4")), values]))
    return text.data


def unframed(pieces: Iterator[bytes], name: str) -> Iterator[pa.RecordBatch]:
    """The column `value` of a stream of such values.

    :param name: the object's key, for the error.
    :raises IntegrityError: the stream is not made of whole values.
    """
    pending = b""
    for piece in pieces:
        pending += piece
        values: list[bytes | None] = []
        start = 0
        while (after := start + _HEAD) <= len(pending):
            size = int.from_bytes(pending[start:after], "big", signed=True)
            if size < -1:
                raise IntegrityError(f"{name} has a value of length {size}: it is damaged, or has no lengths")
            end = after + max(size, 0)
            if end > len(pending):
                break
            values.append(None if size < 0 else pending[after:end])
            start = end
        pending = pending[start:]
        if values:
            yield values_of(values)
    if pending:
        raise IntegrityError(f"{name} ends in the middle of a value")

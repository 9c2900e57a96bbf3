"""Values one after the other: with a separator, with their lengths, or bare. Few become Python objects."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer, Fitting, Rejections
from kafka_archiver.records.vectors import binaries, fixed, joined, large_binary, lengths, text_of

_NOTHING = large_binary(b"")
_HEAD = 4


def values_and(separator: bytes, batch: pa.RecordBatch) -> Buffer:
    """Each value, then the separator. A null value has no bytes."""
    # large_binary: the joined values may exceed 32-bit offsets.
    values = batch.column("value").cast(pa.large_binary())
    end = large_binary(separator)
    text, _ = text_of(pc.binary_join_element_wise(values, _NOTHING, end, null_handling="replace", null_replacement=b""))
    return text.data


def split(pieces: Iterator[bytes], separator: bytes, name: str) -> Iterator[pa.RecordBatch]:
    """The column `value` of a stream of such values.

    :param name: the object's key, for the error.
    :raises IntegrityError: the last value has no separator.
    """
    pending = b""
    for piece in pieces:
        *values, pending = (pending + piece).split(separator)
        if values:
            yield values_of(values)
    if pending:
        raise IntegrityError(f"{name} ends in the middle of a value: it does not end with the separator {separator!r}")


def values_of(values: Sequence[bytes | None]) -> pa.RecordBatch:
    """The column `value`."""
    return pa.record_batch([binaries(values)], ["value"])


def without(separator: bytes) -> Fitting:
    """The stage that rejects values in which a reader would find the separator too early."""
    reason = (
        f"the value contains the separator {separator.decode()!r}, so it cannot be one line of text; set another "
        "`store.options.separator`, or `store.format: jsonl` with `store.content: record`, which holds every value"
    )

    def reject(batch: pa.RecordBatch, marks: Rejections) -> pa.RecordBatch:
        values = batch.column("value")
        if len(separator) > 1:
            # Of the separator "--", the value "a-" has one place too early in "a---".
            values = joined(len(values), [values.cast(pa.large_binary()), separator[:-1]])
        text, _ = text_of(values)
        # Ten times as fast as the search in each value.
        if separator in text.tobytes():
            has_separator = pc.and_(
                pc.greater_equal(pc.find_substring(values, separator), 0), batch.column("value").is_valid()
            )
            marks.reject(dict.fromkeys(batch.column("offset").filter(has_separator).to_pylist(), reason))
        return batch

    return reject


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

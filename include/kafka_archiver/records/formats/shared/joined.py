"""Values one after the other, with or without a separator. Vectors: no value becomes a Python object."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Buffer, Fitting, Rejections
from kafka_archiver.records.vectors import binaries, joined, large_binary, text_of

_NOTHING = large_binary(b"")


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

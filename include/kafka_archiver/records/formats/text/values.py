"""Rejects values that cannot stand before a separator."""

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import Fitting, Rejections
from kafka_archiver.records.vectors import joined, text_of


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

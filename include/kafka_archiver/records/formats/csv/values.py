"""Values that are no text."""

import pyarrow as pa

from kafka_archiver.records.formats.base import Rejections
from kafka_archiver.records.formats.shared.utf8 import not_utf8

_NOT_TEXT = (
    "the value is not UTF-8, so it cannot be text of a CSV file; set `store.content: record`, which has base64 for it, "
    "or another `store.format`"
)


def text_only(batch: pa.RecordBatch, marks: Rejections) -> pa.RecordBatch:
    """Reject values that are not UTF-8."""
    bad = not_utf8(batch.column("value"))
    if len(bad):
        marks.reject(dict.fromkeys(batch.column("offset").take(pa.array(bad)).to_pylist(), _NOT_TEXT))
    return batch

"""`source.value.decode: json`: every value is one JSON document."""

import pyarrow as pa

from kafka_archiver.formats.json_text import others
from kafka_archiver.pipeline.base import Marks

_NOT_JSON = (
    "`source.value.decode` is json, but the value is not one JSON document; "
    "set `decode: bytes`, or correct the producer"
)


def require_json(batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
    """Reject values that are not one JSON document. Null values pass."""
    values = batch.column("value")
    wrong = others(values.to_pylist(), _is_utf8(values))
    if wrong:
        offsets = batch.column("offset")
        marks.reject({offsets[row].as_py(): _NOT_JSON for row in wrong})
    return batch


def _is_utf8(values: pa.Array) -> bool:
    """Whether all values are UTF-8, checked as a vector."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True

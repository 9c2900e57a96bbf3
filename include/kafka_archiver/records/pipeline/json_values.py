"""`decode: json` without a schema: every key or value is one JSON document, whose bytes are kept."""

import pyarrow as pa

from kafka_archiver.records.json_grammar import invalid_documents
from kafka_archiver.records.pipeline.base import Marks


class RequireJson:
    """Rejects keys or values that are not one JSON document. Nulls pass.

    :param column: `key` or `value`.
    """

    def __init__(self, column: str) -> None:
        self._column = column

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        values = batch.column(self._column)
        wrong = invalid_documents(values.to_pylist(), _is_utf8(values))
        if wrong:
            offsets = batch.column("offset")
            marks.reject(dict.fromkeys((offsets[row].as_py() for row in wrong), self._reason()))
        return batch

    def _reason(self) -> str:
        return (
            f"`source.{self._column}.decode` is json, but the {self._column} is not one JSON document; "
            "set `decode: bytes`, or correct the producer"
        )


def _is_utf8(values: pa.Array) -> bool:
    """Return True if all values are UTF-8, checked as a vector."""
    try:
        values.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True

"""Stages that reject records: those set aside, those no reader could read, too large ones, and those without JSON."""

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.json_grammar import invalid_documents
from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.records.vectors import int64s
from kafka_archiver.values.columns import column


class Unread:
    """Rejects records with an unreadable column, and drops the column `UNREAD`.

    :param columns: the columns that are archived.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = columns

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        if UNREAD.name not in batch.schema.names:
            return batch
        marks.reject({offset: why for offset, (name, why) in unread(batch).items() if name in self._columns})
        return batch.drop_columns([UNREAD.name])


def unread(batch: pa.RecordBatch) -> dict[int, tuple[str, str]]:
    """By offset of a record that is not complete: the column that the reader could not read, and why."""
    if UNREAD.name not in batch.schema.names:
        return {}
    marks = zip(batch.column("offset").to_pylist(), batch.column(UNREAD.name).to_pylist(), strict=True)
    return {offset: (mark["column"], mark["reason"]) for offset, mark in marks if mark}


class Aside:
    """Rejects records by offset. :param reasons: why, by offset."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        self._reasons = reasons
        self._offsets = np.array(sorted(reasons), np.int64)

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        set_aside = np.intersect1d(column(batch, "offset"), self._offsets).tolist()
        marks.reject({offset: self._reasons[offset] for offset in set_aside})
        return batch


class TooLarge:
    """Rejects values of more than `limit` bytes. Null values pass."""

    def __init__(self, limit: int) -> None:
        self._limit = int64s([limit], 1)[0]

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        lengths = pc.binary_length(batch.column("value"))
        rows = pc.indices_nonzero(pc.greater(lengths, self._limit))
        if len(rows):
            too_long = zip(batch.column("offset").take(rows).to_pylist(), lengths.take(rows).to_pylist(), strict=True)
            marks.reject({offset: self._reason(length) for offset, length in too_long})
        return batch

    def _reason(self, length: int) -> str:
        return (
            f"the value has {length:,} bytes, and `source.max_value_bytes` was {self._limit.as_py():,} when the run "
            "was planned (a higher limit applies to later plans)"
        )


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

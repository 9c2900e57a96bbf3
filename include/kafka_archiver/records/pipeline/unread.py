"""Records that a reader could not read completely: rejected if the unreadable column is archived."""

from collections.abc import Collection

import pyarrow as pa

from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.pipeline.base import Marks


class Unread:
    """Rejects records with an unreadable column, and drops the column `UNREAD`.

    :param columns: the columns that are archived.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = columns

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        """Take a batch as a reader gave it; without the column `UNREAD`, all its records are complete."""
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

"""Records that a reader could not read whole: bad ones, where what it could not read is archived."""

from collections.abc import Collection

import pyarrow as pa

from kafka_archiver.formats.base import UNREAD
from kafka_archiver.pipeline.base import Marks


class Unread:
    """Rejects the records that lack one of these columns, and drops the column that says so.

    :param columns: what is archived.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = columns

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        """Take a batch as a reader gave it."""
        if UNREAD.name not in batch.schema.names:
            # Of a batch without such records.
            return batch
        marks.reject({offset: why for offset, (name, why) in unread(batch).items() if name in self._columns})
        return batch.drop_columns([UNREAD.name])


def unread(batch: pa.RecordBatch) -> dict[int, tuple[str, str]]:
    """The records that a reader could not read whole, by their offset: which column it could not, and why."""
    if UNREAD.name not in batch.schema.names:
        return {}
    marks = zip(batch.column("offset").to_pylist(), batch.column(UNREAD.name).to_pylist(), strict=True)
    return {offset: (mark["column"], mark["reason"]) for offset, mark in marks if mark}

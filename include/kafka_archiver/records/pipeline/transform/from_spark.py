"""Applies the result of Spark's SQL or a PySpark function to each record: filters, rejects, and replaces values.

Spark works before the pipeline. Its results come with each record, in one more column.
"""

import numpy as np
import pyarrow as pa

from kafka_archiver.model.transforms import Sql, Transform
from kafka_archiver.records.formats.shared.columns import VALUE_DECODED
from kafka_archiver.records.formats.shared.utf8 import broken_texts
from kafka_archiver.records.pipeline.base import NONE, Marks
from kafka_archiver.records.pipeline.transform.base import Fields
from kafka_archiver.records.pipeline.transform.spark_types import field_of
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import column

# The columns: how many rows Spark made of a record, or what else became of it; and the rows as a list.
COUNT, ROWS = "spark_count", "spark_rows"
# The record's time in milliseconds since 1970, `base.NONE` for none; only with `timestamp.from: sql`.
SPARK_TIME = "spark_time"
RAISED_TIME = NONE + 1
RAISED_WHERE, RAISED_SELECT, UNFIT = -1, -2, -3
_RAISED = (
    "Spark raised an error for this record in `transform.{}`, and does not say which: a cast, an overflow or a "
    "division by zero of its ANSI mode; try_cast, try_add, try_divide and so on give null instead"
)
_NO_TEXT = (
    "Spark made text of this record that is not UTF-8, as `CAST(key AS string)` does of other bytes; make_valid_utf8 "
    "replaces them, and base64 keeps them"
)
_UNFIT = "Spark cannot have a value of this record, such as a time beyond the year 294247"


def of_spark(transform: Transform | None) -> list[str]:
    """The columns that readers add to a batch for a plan."""
    if transform is None or transform.sql is None:
        return []
    return [COUNT, *([ROWS] if transform.sql.makes_values else []), *([SPARK_TIME] if transform.sql.time else [])]


class FromSpark:
    """The stage after the decoders. :param topic: of the batches, whose values have a type of their own."""

    def __init__(self, sql: Sql, topic: str) -> None:
        self._sql = sql
        self.made = field_of(sql.made[topic]) if topic in sql.made else None

    def fields(self, before: Fields) -> Fields:
        if self.made is None:
            return before
        return before._replace(value=self.made)

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        counts, offsets = column(batch, COUNT), column(batch, "offset")
        marks.filter(offsets[counts == 0])
        for code, name in ((RAISED_WHERE, "where"), (RAISED_SELECT, "select")):
            marks.reject(dict.fromkeys(offsets[counts == code].tolist(), _RAISED.format(name)))
        marks.reject(dict.fromkeys(offsets[counts == UNFIT].tolist(), _UNFIT))
        kept_names = [name for name in batch.schema.names if name not in (COUNT, ROWS, SPARK_TIME)]
        if self.made is None:
            return batch.select(kept_names)
        rows = batch.column(ROWS)
        lengths = np.maximum(counts, 0)
        places = np.repeat(np.arange(len(counts)), lengths)
        values = rows.flatten()
        marks.reject(dict.fromkeys(offsets[places[broken_texts(values)]].tolist(), _NO_TEXT))
        again = batch.select(kept_names).take(numbers(places))
        place = again.schema.get_field_index(VALUE_DECODED)
        return (
            again.append_column(VALUE_DECODED, values) if place < 0 else again.set_column(place, VALUE_DECODED, values)
        )

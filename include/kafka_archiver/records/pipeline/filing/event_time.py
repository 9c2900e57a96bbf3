"""The stage `time`: the time by which a record is filed, if it is not Kafka's. `model/layouts/read_times` reads it."""

from collections.abc import Callable
from typing import assert_never

import numpy as np
import pyarrow as pa

from kafka_archiver.model.layouts.read_times import Parser, UnreadableTimeError
from kafka_archiver.model.settings import EventTime, Settings
from kafka_archiver.records.formats.shared.texts import in_iso_years, units
from kafka_archiver.records.pipeline.base import NONE, TIME, Marks
from kafka_archiver.records.pipeline.filing.values import Extract, as_texts
from kafka_archiver.records.pipeline.transform.from_spark import COUNT, RAISED_TIME, SPARK_TIME
from kafka_archiver.records.vectors import numbers
from kafka_archiver.values.columns import Int64s, column

# Where another engineer adds a source: its times of a batch, `NONE` for none, and by row why one cannot be read.
Times = tuple[Int64s, dict[int, str]]
# By the unit of a column: how many make a millisecond, and how many milliseconds one is.
_MILLISECONDS = {"day": (1, 86_400_000), "s": (1, 1000), "ms": (1, 1), "us": (1000, 1), "ns": (1_000_000, 1)}


def time_stage(settings: Settings) -> "FileTime | None":
    """The stage; None if records are filed by Kafka's time."""
    time = settings.time
    match time.source:
        case "record":
            return None
        case "wallclock":
            return FileTime(_at(time.at), time, None)
        case "sql":
            return FileTime(_of_spark, time, None)
        case "value" | "key" | "header":
            # The time is that of the record before the transforms.
            extract = Extract(_field(time), settings.model_copy(update={"transform": None}))
            return FileTime(_Read(extract, time), time, extract)
        case _:
            assert_never(time.source)


class FileTime:
    """Adds the column `TIME`.

    :param read: the times of a batch. :param extract: what it reads; None: nothing of the record.
    """

    def __init__(self, read: Callable[[pa.RecordBatch], Times], time: EventTime, extract: Extract | None) -> None:
        self._read, self._time, self.extract = read, time, extract

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        """Read the times; what a missing one means is a setting."""
        times, wrong = self._read(batch)
        missing = np.flatnonzero(times == NONE)
        if len(missing):
            offsets = column(batch, "offset")
            match self._time.missing:
                case "null":
                    pass
                case "record":
                    kafkas = column(batch, "timestamp")
                    times = np.where((times == NONE) & (kafkas >= 0), kafkas, times)
                case "skip":
                    marks.filter(np.unique(offsets[missing]))
                case "bad_record":
                    prefix = f"`timestamp.from` is {self._time.source}, but "
                    no = f"{_field(self._time)} is null or missing"
                    marks.reject({int(offsets[row]): prefix + wrong.get(row, no) for row in missing.tolist()})
                case _:
                    assert_never(self._time.missing)
        return batch.append_column(TIME, numbers(times))


def _at(moment: int | None) -> Callable[[pa.RecordBatch], Times]:
    """The plan's time for every record."""
    at = NONE if moment is None else moment
    return lambda batch: (np.full(batch.num_rows, at), {})


def _of_spark(batch: pa.RecordBatch) -> Times:
    """The times that Spark has found. A record that its SQL filters needs none."""
    times, filtered = column(batch, SPARK_TIME), column(batch, COUNT) == 0
    raised = np.flatnonzero(times == RAISED_TIME)
    wrong = dict.fromkeys(
        raised.tolist(), "Spark raised an error for this record; try_to_timestamp and so on give null"
    )
    times = np.where(times == RAISED_TIME, NONE, times)
    return np.where(filtered & (times == NONE), 0, times), wrong


def _field(time: EventTime) -> str:
    """The field as layouts have it: value.created, header.x."""
    return f"{time.source}.{time.field}" if time.field else time.source


class _Read:
    """Reads times of a value."""

    def __init__(self, extract: Extract, time: EventTime) -> None:
        self._extract, self._parse = extract, Parser(time)

    def __call__(self, batch: pa.RecordBatch) -> Times:
        extracted = self._extract(batch)
        wrong = {row: f"{self._extract.field} is {what}" for row, what in extracted.wrong.items()}
        if pa.types.is_timestamp(extracted.values.type) or pa.types.is_date(extracted.values.type):
            return self._typed(extracted.values, wrong)
        indices, texts = as_texts(extracted.values)
        times: list[int] = []
        reasons: dict[int, str] = {}
        for number, text in enumerate(texts):
            try:
                times.append(self._parse(text))
            except UnreadableTimeError as error:
                times.append(NONE)
                reasons[number] = f"{self._extract.field} is {error}"
        codes = np.array(indices.fill_null(len(texts)).to_pylist(), np.int64)
        for row in np.flatnonzero(np.isin(codes, list(reasons))).tolist() if reasons else ():
            wrong[row] = reasons[int(codes[row])]
        return np.array([*times, NONE], np.int64)[codes], wrong

    def _typed(self, values: pa.Array, wrong: dict[int, str]) -> Times:
        """Dates and timestamps, rounded down to milliseconds."""
        present, inside = values.is_valid().to_numpy(zero_copy_only=False), in_iso_years(values)
        numbers = np.where(present & inside, units(values).fill_null(0).to_numpy(), 0).astype(np.int64)
        unit = str(values.type).split("[")[1].rstrip("]").split(",")[0]
        finer, coarser = _MILLISECONDS[unit]
        reason = f"{self._extract.field} is outside the years 1 to 9999"
        wrong |= dict.fromkeys(np.flatnonzero(present & ~inside).tolist(), reason)
        return np.where(present & inside, numbers * coarser // finer, NONE), wrong

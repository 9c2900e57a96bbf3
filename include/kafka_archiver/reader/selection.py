"""The selection of records that a reader wants, and its rows of an object. Pure, apart from Arrow."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.mak import keeps_values_alone
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.values.columns import column
from kafka_archiver.values.intervals import MS_PER_HOUR, hour_start, to_hour
from kafka_archiver.values.ranges import Range

# `[start, end)`; None: no limit.
Offsets = tuple[int | None, int | None]
Time = datetime | str
LAST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """The records that are read of a topic. None: all. `hours`: whole hours since 1970."""

    topic: str
    hours: range | None
    offsets: Range
    partitions: frozenset[int] | None
    generation: int | None

    def takes(self, topic: str, partition: int, generation: int) -> bool:
        """Return True if records of a partition's generation are wanted."""
        return (
            topic == self.topic
            and (self.partitions is None or partition in self.partitions)
            and self.generation in (None, generation)
        )

    def may_have(self, entry: ObjectEntry) -> bool:
        """Return True if an object of a wanted partition may have wanted records."""
        in_offsets = entry.first_offset < self.offsets.end and self.offsets.start <= entry.last_offset
        return in_offsets and (
            self.hours is None or any(hour in self.hours for hour in entry.hours if hour is not None)
        )

    def all_hours(self, entry: ObjectEntry) -> bool:
        """Return True if every row of an object is of a wanted hour."""
        hours = self.hours
        return hours is None or all(hour is not None and hour in hours for hour in entry.hours)

    def all_offsets(self, entry: ObjectEntry) -> bool:
        """Return True if every row of an object has a wanted offset."""
        return self.offsets.start <= entry.first_offset and entry.last_offset < self.offsets.end

    def rows(self, batch: pa.RecordBatch, entry: ObjectEntry, target: Target, offset: str) -> pa.RecordBatch:
        """Return the wanted rows of a batch.

        :param offset: the column of offsets.
        :raises ConfigError: the rows do not tell which of them are wanted.
        """
        if not self.all_offsets(entry):
            if batch.column(offset).null_count:
                raise ConfigError(
                    f"{entry.key} has values without their offsets, of the offsets {entry.first_offset} to "
                    f"{entry.last_offset} and of others between them in other objects: read from "
                    f"{entry.first_offset} to {entry.last_offset + 1}, or without `offsets`"
                )
            offsets = column(batch, offset)
            batch = batch.filter(pa.array((offsets >= self.offsets.start) & (offsets < self.offsets.end)))
        return batch if self.all_hours(entry) else self._of_hours(batch, entry, target)

    def _of_hours(self, batch: pa.RecordBatch, entry: ObjectEntry, target: Target) -> pa.RecordBatch:
        name = next((f.name for f in batch.schema if kafkas(f) == "timestamp"), None)
        if name is None or target.settings.time.source != "record" or keeps_values_alone(target.settings):
            hours = sorted(hour for hour in entry.hours if hour is not None)
            raise ConfigError(
                f"{entry.key} has records of the hours from {hour_start(hours[0]):%Y-%m-%dT%H} to "
                f"{hour_start(hours[-1]):%Y-%m-%dT%H}, and its rows do not tell which: read all of these hours, or "
                "without `hours`"
            )
        assert self.hours is not None
        times = pc.cast(batch.column(name), pa.int64()).to_numpy(zero_copy_only=False)
        first, end = self.hours.start * MS_PER_HOUR, self.hours.stop * MS_PER_HOUR
        return batch.filter(pa.array(np.asarray((times >= first) & (times < end))))


def selection_of(
    topic: str,
    hours: tuple[Time, Time] | Time | None = None,
    offsets: Offsets | None = None,
    partitions: Collection[int] | int | None = None,
    generation: int | None = None,
) -> Selection:
    """Return the selection that a caller means.

    :raises ConfigError: an argument is of another type, an hour does not begin on the hour, or a range has no offset.
    """
    if not isinstance(topic, str):
        raise ConfigError(f"topic: expected its name, found {topic!r}")
    if generation is not None and not (_is_number(generation) and generation >= 0):
        raise ConfigError(f"generation: expected a number from 0 on, found {generation!r}")
    return Selection(
        topic=topic,
        hours=None if hours is None else _hours(hours),
        offsets=_offsets(offsets),
        partitions=_partitions(partitions),
        generation=generation,
    )


def _is_number(value: object) -> bool:
    """Return True for whole numbers, numpy's too."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _offsets(offsets: Offsets | None) -> Range:
    bounds: Sequence[Any] = (None, None) if offsets is None else offsets
    is_pair = isinstance(bounds, list | tuple) and len(bounds) == 2
    if not is_pair or any(not (bound is None or _is_number(bound)) for bound in bounds):
        raise ConfigError(f"offsets: expected (start, end), each a number or None, found {offsets!r}")
    start, end = bounds
    selected = Range(int(start or 0), LAST_OFFSET if end is None else int(end))
    if selected.start < 0 or selected.end <= selected.start:
        raise ConfigError(f"offsets: expected (start, end) with 0 <= start < end or None, found {offsets}")
    return selected


def _partitions(partitions: Collection[int] | int | None) -> frozenset[int] | None:
    if partitions is None:
        return None
    several = isinstance(partitions, Collection) and not isinstance(partitions, str | bytes)
    chosen: list[Any] = list(partitions) if several else [partitions]  # type: ignore[arg-type]
    if not chosen or not all(_is_number(number) and number >= 0 for number in chosen):
        raise ConfigError(f"partitions: expected a number from 0 on, or several, found {partitions!r}")
    return frozenset(int(number) for number in chosen)


def _hours(hours: tuple[Time, Time] | Time) -> range:
    expected = (
        "hours: expected an hour, or the start of the first one and the end of the last one, as in "
        f"('2026-11-21T05', '2026-11-21T08'); found {hours!r}"
    )
    bounds: Sequence[Any] = hours if isinstance(hours, list | tuple) else (hours,)
    if len(bounds) not in (1, 2) or not all(isinstance(time, datetime | str) for time in bounds):
        raise ConfigError(expected)
    try:
        first, end = _moment(bounds[0]), _moment(bounds[-1])
    except OverflowError:
        raise ConfigError(expected) from None
    if any(time.replace(minute=0, second=0, microsecond=0) != time for time in (first, end)):
        raise ConfigError(expected)
    # Not as a time: the hour behind the last one of the year 9999 is none.
    chosen = range(to_hour(first), to_hour(end) + (len(bounds) == 1))
    if not chosen:
        raise ConfigError(expected)
    return chosen


def _moment(time: Time) -> datetime:
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise ConfigError(f"hours: expected a time like 2026-11-21T05 in UTC, found {time!r}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

"""The selection of records that a reader wants, and its rows of an object. Pure, apart from Arrow."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.values.columns import column
from kafka_archiver.values.intervals import MS_PER_HOUR, hour_start, hours_between
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
        if name is None or target.settings.time.source != "record":
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

    :raises ConfigError: an hour does not begin on the hour, or a range has no offset.
    """
    start, end = offsets or (None, None)
    selected = Range(start or 0, LAST_OFFSET if end is None else end)
    if selected.start < 0 or selected.end <= selected.start:
        raise ConfigError(f"offsets: expected (start, end) with 0 <= start < end or None, found {offsets}")
    some = [partitions] if isinstance(partitions, int) else partitions
    return Selection(
        topic=topic,
        hours=None if hours is None else _hours(hours),
        offsets=selected,
        partitions=None if some is None else frozenset(some),
        generation=generation,
    )


def _hours(hours: tuple[Time, Time] | Time) -> range:
    first, end = (_moment(t) for t in hours) if isinstance(hours, tuple) else (_moment(hours), None)
    end = end or first + timedelta(hours=1)
    if end <= first or any(time.replace(minute=0, second=0, microsecond=0) != time for time in (first, end)):
        raise ConfigError(
            f"hours: expected an hour, or the start of the first one and the end of the last one, as in "
            f"('2026-11-21T05', '2026-11-21T08'); found {hours!r}"
        )
    return hours_between(first, end)


def _moment(time: Time) -> datetime:
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        raise ConfigError(f"hours: expected a time like 2026-11-21T05 in UTC, found {time!r}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

"""The layout `hourly`: by the hour of the record's timestamp, date=2026-11-21/hour=05. A part is an hour."""

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR, hour_of, hour_start, to_ms
from kafka_archiver.keys import NO_TIME
from kafka_archiver.layouts.base import Filed

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_archiver.columns import Int64s

# The part of records without a usable timestamp, where `intervals.hour_of` says None.
NO_HOUR = -1


class Hourly:
    """Files records by the hour of Kafka's timestamp, UTC."""

    name = "hourly"
    columns = ("date", "hour")

    def parts(self, batch: "pa.RecordBatch") -> "Int64s":
        """The hour of each record."""
        # Imported late: code that only reads manifests does not need it.
        import numpy as np

        from kafka_archiver.columns import column

        times = column(batch, "timestamp")
        if not len(times):
            return times
        low, high = int(times.min()), int(times.max())
        # Most batches are of one hour and need no division for each record.
        if low >= 0 and high <= LAST_MS and low // MS_PER_HOUR == high // MS_PER_HOUR:
            return np.full(len(times), low // MS_PER_HOUR)
        return np.where((times < 0) | (times > LAST_MS), NO_HOUR, times // MS_PER_HOUR)

    def path(self, part: int) -> str:
        """date=2026-11-21/hour=05"""
        return hour_path(None if part == NO_HOUR else part)

    def parse(self, path: str) -> int:
        """The hour."""
        hour = parse_hour_path(path)
        return NO_HOUR if hour is None else hour

    def hours(self, entry: Filed) -> Collection[int | None]:
        """The hour of the object's path."""
        return (parse_hour_path(entry.path),)


def hour_path(hour: int | None) -> str:
    """The path of an hour (whole hours since 1970); None: records without a usable time."""
    if hour is None:
        return f"date={NO_TIME}/hour={NO_TIME}"
    start = hour_start(hour)
    return f"date={start.year:04d}-{start:%m-%d}/hour={start:%H}"


@lru_cache(maxsize=4096)
def parse_hour_path(path: str) -> int | None:
    """The inverse of `hour_path`.

    :raises ValueError: it is not an hour's path.
    """
    if path == hour_path(None):
        return None
    start = datetime.strptime(path + " +0000", "date=%Y-%m-%d/hour=%H %z")
    hour = hour_of(to_ms(start))
    if hour is None or hour_path(hour) != path:
        raise ValueError(f"not the path of an hour: {path}")
    return hour

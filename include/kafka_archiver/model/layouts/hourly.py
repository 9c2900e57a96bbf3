"""The layouts `hourly` and `daily`, by the time: <topic>/date=2026-11-21/hour=05, or without the hour.

The names of the objects in these folders: `model/object_keys`.
"""

from datetime import datetime
from functools import lru_cache

from kafka_archiver.model.layouts.form import PathForm
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.model.object_keys import NO_TIME, topic_prefix
from kafka_archiver.values.intervals import hour_of, hour_start, to_ms


class Daily:
    """Files records by their day, UTC unless the YAML names another zone."""

    name = "daily"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        return PathForm(parsed("{topic}/date={yyyy-MM-dd}"), columns=("date",), missing="null", **options.clock())


class Hourly:
    """Files records by their hour, UTC unless the YAML names another zone."""

    name = "hourly"
    options = ClockOptions

    def form(self, options: ClockOptions) -> PathForm:
        """Records without a usable time go to a null partition."""
        folders = parsed("{topic}/date={yyyy-MM-dd}/hour={HH}")
        return PathForm(folders, columns=("date", "hour"), missing="null", **options.clock())


def hour_path(hour: int | None) -> str:
    """The path of an hour (whole hours since 1970); None: records without a usable time."""
    if hour is None:
        return f"date={NO_TIME}/hour={NO_TIME}"
    start = hour_start(hour)
    return f"date={start.year:04d}-{start:%m-%d}/hour={start:%H}"


def dead_letter_prefix(topic: str, hour: int | None) -> str:
    """Return the prefix of a topic's dead letters of an hour, with the closing slash, whatever the archive's layout."""
    return f"{topic_prefix(topic, dead_letter=True)}{hour_path(hour)}/"


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

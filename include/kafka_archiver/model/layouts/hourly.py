"""The layouts `hourly` and `daily`, by the time: <topic>/date=2026-11-21/hour=05, or without the hour.

The names of the objects in these folders: `model/object_keys`.
"""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from kafka_archiver.model.layouts.base import NamedLayout
from kafka_archiver.model.layouts.form import NAME, PathForm
from kafka_archiver.model.layouts.options import ClockOptions
from kafka_archiver.model.layouts.template import parsed
from kafka_archiver.model.object_keys import NO_TIME, topic_prefix
from kafka_archiver.values.intervals import hour_of, hour_start, to_ms


def by_time(folders: str, columns: tuple[str, ...] = (), name: str = "") -> Callable[[ClockOptions], PathForm]:
    """Return what makes a form of a template with times. Records without a usable time go to a null partition."""
    tokens, own_name = parsed(folders), parsed(name) or NAME
    return lambda options: PathForm(tokens, own_name, columns=columns, missing="null", **options.clock())


# UTC unless the YAML names another zone.
HOURLY = NamedLayout("hourly", ClockOptions, by_time("{topic}/date={yyyy-MM-dd}/hour={HH}", ("date", "hour")))
DAILY = NamedLayout("daily", ClockOptions, by_time("{topic}/date={yyyy-MM-dd}", ("date",)))


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

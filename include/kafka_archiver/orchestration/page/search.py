"""The search of the list of archives: an hour, a day, a record, a run or an object's key leads to its page. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from typing import NamedTuple
from urllib.parse import quote

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.object_keys import split_object_key, split_run
from kafka_archiver.reader.lookup import record_place
from kafka_archiver.state.overview import Snapshot

_HOUR = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d)(?::\d\d){0,2}(?:Z|\+00:00| ?UTC)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAG_RUN = re.compile(r"[a-z_]+__\d{4}-\d\d-\d\dT\S+")


class Target(NamedTuple):
    """The thing that somebody looks for, and where it is shown below an archive's page.

    `archive`: the archive that was named, or None; `topic`: only archives with this topic can have it; None: all can.
    """

    words: str
    path: str
    archive: str | None = None
    topic: str | None = None


def target_of(text: str, archives: Collection[str]) -> Target | None:
    """Return what a text looks for; None: it is a part of an archive's name.

    :param archives: the archives that the user may see; the name of one may stand before an hour, a day or a run.
    """
    if text.strip() in archives:
        return None
    archive, _, more = text.strip().partition(" ")
    if archive in archives and (target := _target(more.strip())):
        return target._replace(archive=archive)
    return _target(text.strip())


def _target(text: str) -> Target | None:
    for read in (_hour, _day, _record, _object, _dag_run, _run):
        try:
            if target := read(text):
                return target
        except (ValueError, ConfigError):
            continue
    return None


def _hour(text: str) -> Target | None:
    if match := _HOUR.fullmatch(text):
        hour = datetime.fromisoformat(f"{match[1]}T{match[2]}:00:00+00:00")
        return Target(f"Hour {hour:%Y-%m-%d %H}:00", f"/hours/{hour:%Y-%m-%dT%H}")
    return None


def _day(text: str) -> Target | None:
    if _DAY.fullmatch(text):
        day = date.fromisoformat(text)
        return Target(f"Day {day}", f"?last={day}#hours")
    return None


def _record(text: str) -> Target:
    place, offset = record_place(text)
    address = f"{place.topic}+{place.partition}@{offset}"
    return Target(f"Record {address}", f"/records?at={quote(address, safe='')}", topic=place.topic)


def _object(text: str) -> Target | None:
    """Return the first records of an object's chunk."""
    name = split_object_key(text)
    return _record(f"{name.topic}+{name.partition}@{name.start}") if name else None


def _dag_run(text: str) -> Target | None:
    """Return a run by the name that Airflow gives it."""
    return Target(f"DAG run {text}", f"/dag-runs/{quote(text, safe='')}") if _DAG_RUN.fullmatch(text) else None


def _run(text: str) -> Target:
    split_run(text)
    return Target(f"Run {text}", f"/runs/{quote(text, safe='')}")


def archives_with(
    topic: str | None, archives: Mapping[str, Archive], snapshots: Mapping[str, Snapshot | None]
) -> Iterable[str]:
    """Yield the archives that have a topic: those that select it now, or that have archived it; None: all."""
    for name, archive in archives.items():
        state = (snapshot := snapshots.get(name)) and snapshot.state
        known = {partition.topic for partition in state.partitions} if state else set()
        if topic is None or topic in known or archive.source.selects(topic):
            yield name

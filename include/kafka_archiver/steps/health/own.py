"""Checks of other distributions: entry points of the group `kafka_archiver.checks`.

Each is a function of the archive, its snapshot and the time (UTC), which returns checks. It must not block: a page
waits for it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from typing import TypeAlias

from kafka_archiver.config import Archive
from kafka_archiver.steps.health.check import HealthCheck
from kafka_archiver.steps.health.judge import judge
from kafka_archiver.steps.overview.snapshot import Snapshot

GROUP = "kafka_archiver.checks"
Own: TypeAlias = Callable[[Archive, Snapshot, datetime], Iterable[HealthCheck]]


@cache
def _loaded() -> tuple[tuple[str, Own | str], ...]:
    """The checks by name, or the error of one that cannot be loaded. Loaded once in a process."""
    found: list[tuple[str, Own | str]] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found.append((point.name, point.load()))
        except (ImportError, AttributeError) as error:
            found.append((point.name, f"{point.value} cannot be loaded: {error}"))
    return tuple(found)


def checks_of(archive: Archive, found: Snapshot | None, now: datetime) -> list[HealthCheck]:
    """All checks of an archive: the archiver's, and those of other distributions.

    :param found: None: nobody has looked yet.
    """
    return [*judge(archive, found, now), *(own_checks(archive, found, now) if found else ())]


def own_checks(archive: Archive, found: Snapshot, now: datetime) -> list[HealthCheck]:
    """The results of all these checks. One that fails itself is `unknown`, and says why."""
    results: list[HealthCheck] = []
    for name, check in _loaded():
        if isinstance(check, str):
            results.append(HealthCheck(name=name, verdict="unknown", found=check))
            continue
        try:
            results += check(archive, found, now)
        except Exception as error:  # noqa: BLE001 - somebody else's code must not hide the other checks
            results.append(HealthCheck(name=name, verdict="unknown", found=f"{type(error).__name__}: {error}"))
    return [result for result in results if result.name not in archive.health.ignore]

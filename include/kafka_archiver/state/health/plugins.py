"""The words of health, and checks of other distributions: entry points of the group `kafka_archiver.checks`.

Each is a function of the archive, its snapshot and the time (UTC), which returns checks. It must not block: a page
waits for it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal, TypeAlias

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import words
from kafka_archiver.messages.errors import error_in_words
from kafka_archiver.model.findings import Finding, Severity, worst
from kafka_archiver.state.health.judge import judge
from kafka_archiver.state.overview.snapshot import Snapshot

GROUP = "kafka_archiver.checks"
PluginCheck: TypeAlias = Callable[[Archive, Snapshot, datetime], Iterable[Finding]]
# failing: the archive is not healthy. warning: it is, but look at it. unknown: nobody knows, so it is not healthy.
Verdict = Literal["ok", "warning", "unknown", "failing"]
VERDICTS: dict[Severity, Verdict] = {"ok": "ok", "warning": "warning", "unknown": "unknown", "problem": "failing"}


def verdict_of(checks: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of some checks; ok if there are none."""
    return VERDICTS[worst(check.severity for check in checks)]


def as_check(check: Finding) -> dict[str, Any]:
    """Return a check for programs."""
    return {"name": check.kind, "verdict": VERDICTS[check.severity], "found": check.text, "do": check.steps}


def HealthCheck(name: str, verdict: Verdict, found: str, do: Iterable[str] = ()) -> Finding:  # noqa: N802 - see below
    """Return a check. Checks of other distributions know it as a class, from when it was one."""
    severity: dict[Verdict, Severity] = {verdict: severity for severity, verdict in VERDICTS.items()}
    return Finding(kind=name, severity=severity[verdict], observed=found, actions=tuple(map(words, do)))


@cache
def _loaded() -> tuple[tuple[str, PluginCheck | str], ...]:
    """Return the checks by name, or the error of one that cannot be loaded. Loaded once in a process."""
    checks: list[tuple[str, PluginCheck | str]] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            checks.append((point.name, point.load()))
        except (ImportError, AttributeError) as error:
            checks.append((point.name, f"{point.value} cannot be loaded: {error}"))
    return tuple(checks)


def checks_of(archive: Archive, snapshot: Snapshot | None, moment: datetime) -> list[Finding]:
    """Return all checks of an archive: the archiver's, and those of other distributions.

    :param snapshot: None: nobody has looked yet.
    """
    return [*judge(archive, snapshot, moment), *(plugin_checks(archive, snapshot, moment) if snapshot else ())]


def plugin_checks(archive: Archive, snapshot: Snapshot, moment: datetime) -> list[Finding]:
    """Return the results of all these checks. One that fails itself is `unknown`, and says why."""
    results: list[Finding] = []
    for name, check in _loaded():
        if isinstance(check, str):
            results.append(Finding(kind=name, severity="unknown", observed=check))
            continue
        try:
            results += check(archive, snapshot, moment)
        except Exception as error:  # noqa: BLE001 - somebody else's code must not hide the other checks
            results.append(Finding(kind=name, severity="unknown", observed=error_in_words(error)))
    return [result for result in results if result.kind not in archive.health.ignore]

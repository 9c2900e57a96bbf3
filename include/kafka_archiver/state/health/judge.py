"""The checks of an archive's health: answers, lag, age, hours, records, runs, plans and the audit; and those of others.

The limits are in `config/health`. Other distributions add checks by entry points of the group `kafka_archiver.checks`:
each is a function of the archive, its snapshot and the time (UTC), which returns checks. It must not block: a page
waits for it.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal, TypeAlias

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Action, words
from kafka_archiver.messages.advice import audit_again, audit_dag_id, examine, last_hours, run_now, runs, unpause
from kafka_archiver.messages.errors import error_in_words
from kafka_archiver.messages.wording import span
from kafka_archiver.model.findings import Finding, Severity, worst
from kafka_archiver.state.overview.snapshot import Snapshot
from kafka_archiver.values.documents import isoformat

GROUP = "kafka_archiver.checks"
PluginCheck: TypeAlias = Callable[[Archive, Snapshot, datetime], Iterable[Finding]]
# failing: the archive is not healthy. warning: it is, but look at it. unknown: nobody knows, so it is not healthy.
Verdict = Literal["ok", "warning", "unknown", "failing"]
VERDICTS: dict[Severity, Verdict] = {"ok": "ok", "warning": "warning", "unknown": "unknown", "problem": "failing"}
# The check that reports a trouble, by the trouble's name; `brokers` reports all others.
_OF_TROUBLES = {
    **dict.fromkeys(("failed", "failed for good", "tried again", "future date", "failed request"), "runs"),
    **dict.fromkeys(("stuck", "overdue", "paused", "no dag", "no scheduler", "airflow"), "runs"),
    **dict.fromkeys(("unfinished run", "unfinished rebuild"), "plans"),
    **dict.fromkeys(("damaged", "no report", "never audited"), "audit"),
    **dict.fromkeys(("recorded loss", "dead letters", "topic not read"), "records"),
    "incomplete hours": "hours",
}
# Answers for which fresher ones have not come for so long are stale, or say nothing any more.
STALE, TOO_OLD = timedelta(minutes=5), timedelta(minutes=30)
_IN_ORDER = ("hours", "records", "runs", "plans", "brokers")


def judge(archive: Archive, snapshot: Snapshot | None, moment: datetime) -> list[Finding]:
    """Return the archive's own checks, without those that its YAML ignores.

    :param snapshot: None: nobody has looked yet.
    """
    if snapshot is None:
        return [_check("answers", "unknown", "nobody has looked at the archive yet")]
    checks = (
        _answers(snapshot, moment),
        _lag(archive, snapshot),
        _age(archive, snapshot, moment),
        *_troubles(snapshot),
        _audit(archive, snapshot, moment),
    )
    return [check for check in checks if check.kind not in archive.health.ignore]


def _check(kind: str, severity: Severity, observed: str, *actions: Action) -> Finding:
    return Finding(kind=kind, severity=severity, observed=observed, actions=actions)


def _unknown(name: str, snapshot: Snapshot) -> Finding:
    return _check(name, "unknown", f"unknown until the {'brokers answer' if snapshot.ledger_read else 'store answers'}")


def _answers(snapshot: Snapshot, moment: datetime) -> Finding:
    doctor = examine(snapshot.archive)
    if snapshot.error:
        return _check("answers", "problem", snapshot.error, doctor)
    if (age := moment - snapshot.taken_at) > STALE:
        verdict: Severity = "unknown" if age > TOO_OLD else "warning"
        return _check(
            "answers",
            verdict,
            f"fresh answers have been awaited for {span(age)}; the last ones are of {isoformat(snapshot.taken_at)}",
            doctor,
        )
    return _check("answers", "ok", "the store and the brokers answer")


def _lag(archive: Archive, snapshot: Snapshot) -> Finding:
    lag, most = snapshot.lag, archive.health.max_lag_records
    if lag is None:
        return _unknown("lag", snapshot)
    if most is not None and lag > most:
        observed = f"{lag:,} offsets wait; `health.max_lag_records` is {most:,}"
        if snapshot.at_work:
            return _check("lag", "problem", f"{observed}. A run is at work", runs(archive.archive))
        return _check("lag", "problem", observed, run_now(archive.archive))
    return _check("lag", "ok", f"{lag:,} offsets wait")


def _age(archive: Archive, snapshot: Snapshot, moment: datetime) -> Finding:
    if not snapshot.ledger_read:
        return _unknown("age", snapshot)
    most = archive.health.max_age or (2 * snapshot.interval + timedelta(hours=1) if snapshot.interval else None)
    age = snapshot.age(moment)
    if age is None:
        # Before the first closed hour, the first run counts.
        since = snapshot.begun
        age = None if since is None else moment - since
        observed = "no hour is closed yet"
    else:
        observed = f"hours are closed until {isoformat(snapshot.closed_until)}" if snapshot.closed_until else ""
    if most is None or age is None or age <= most:
        return _check("age", "ok", observed)
    return _check(
        "age",
        "problem",
        f"{observed}, {span(age)} ago; the limit is {span(most)}",
        last_hours(archive.archive, 24),
    )


def _troubles(snapshot: Snapshot) -> Iterator[Finding]:
    for name in _IN_ORDER:
        findings = [t for t in snapshot.troubles if _OF_TROUBLES.get(t.kind, "brokers") == name]
        if findings:
            yield _of(name, findings)
        elif name != "runs" and not (snapshot.state if name == "brokers" else snapshot.ledger_read):
            yield _unknown(name, snapshot)
        else:
            yield _check(name, "ok", "nothing to report")


def _of(name: str, findings: Iterable[Finding]) -> Finding:
    """Return the check that sums up these findings: the first one in full."""
    worst_first = sorted(findings, key=lambda finding: finding.severity != "problem")
    # The first one has its actions; a moved group is one finding for every partition.
    first, more = worst_first[0], f" (and {len(worst_first) - 1} more)" if len(worst_first) > 1 else ""
    return Finding(
        kind=name,
        severity=worst(finding.severity for finding in worst_first),
        observed=f"{first.kind}: {first.text}{more}",
        actions=first.actions,
        brief=first.brief,
        sums_up=tuple(dict.fromkeys(finding.kind for finding in worst_first)),
    )


def _audit(archive: Archive, snapshot: Snapshot, moment: datetime) -> Finding:
    if damage := [t for t in snapshot.troubles if _OF_TROUBLES.get(t.kind) == "audit"]:
        return _of("audit", damage)
    if not snapshot.ledger_read:
        return _unknown("audit", snapshot)
    most, again = archive.max_audit_age, [audit_again(archive.archive)]
    last = snapshot.audit.at if snapshot.audit else None
    if last is None and snapshot.begun is None:
        return _check("audit", "ok", "nothing is archived yet")
    observed = f"the last audit was at {isoformat(last)}" if last else "there was no audit yet"
    if snapshot.audit_paused:
        audits = audit_dag_id(archive.archive)
        observed, again = f"{observed}, and DAG {audits} is paused", [unpause(audits), *again]
    since = moment - (last or snapshot.begun or moment)
    if most is not None and since > most:
        return _check("audit", "warning", f"{observed}; `health.max_audit_age` is {span(most)}", *again)
    return _check("audit", "ok", f"{observed}: {snapshot.audit.verdict}" if snapshot.audit else observed)


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

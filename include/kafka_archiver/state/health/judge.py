"""The checks of one archive. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Action
from kafka_archiver.messages.advice import audit_again, audit_dag_id, examine, last_hours, run_now, runs, unpause
from kafka_archiver.messages.wording import span
from kafka_archiver.model.findings import Finding, Severity, worst
from kafka_archiver.state.overview.snapshot import Snapshot
from kafka_archiver.values.documents import isoformat

# The check that reports a trouble, by the trouble's name; `brokers` reports all others.
_OF_TROUBLES = {
    **dict.fromkeys(("failed", "failed for good", "tried again", "future date", "failed request"), "runs"),
    **dict.fromkeys(("stuck", "overdue", "paused", "no dag", "no scheduler", "airflow"), "runs"),
    **dict.fromkeys(("unfinished run", "unfinished rebuild"), "plans"),
    **dict.fromkeys(("damaged", "no report", "never audited"), "audit"),
    **dict.fromkeys(("recorded loss", "dead letters"), "records"),
    "incomplete hours": "hours",
}
# Answers older than these are stale, or say nothing any more.
STALE, TOO_OLD = timedelta(minutes=5), timedelta(minutes=30)
_IN_ORDER = ("hours", "records", "runs", "plans", "brokers")


def judge(archive: Archive, found: Snapshot | None, now: datetime) -> list[Finding]:
    """The archive's own checks, without those that its YAML ignores.

    :param found: None: nobody has looked yet.
    """
    if found is None:
        return [_check("answers", "unknown", "nobody has looked at the archive yet")]
    checks = (
        _answers(found, now),
        _lag(archive, found),
        _age(archive, found, now),
        *_troubles(found),
        _audit(archive, found, now),
    )
    return [check for check in checks if check.kind not in archive.health.ignore]


def _check(kind: str, severity: Severity, observed: str, *actions: Action) -> Finding:
    return Finding(kind=kind, severity=severity, observed=observed, actions=actions)


def _unknown(name: str, found: Snapshot) -> Finding:
    return _check(name, "unknown", f"unknown until the {'brokers answer' if found.ledger_read else 'store answers'}")


def _answers(found: Snapshot, now: datetime) -> Finding:
    doctor = examine(found.archive)
    if found.error:
        return _check("answers", "problem", found.error, doctor)
    if (old := now - found.taken_at) > STALE:
        verdict: Severity = "unknown" if old > TOO_OLD else "warning"
        return _check(
            "answers", verdict, f"the last answers are of {isoformat(found.taken_at)}, {span(old)} ago", doctor
        )
    return _check("answers", "ok", "the store and the brokers answer")


def _lag(archive: Archive, found: Snapshot) -> Finding:
    lag, most = found.lag, archive.health.max_lag_records
    if lag is None:
        return _unknown("lag", found)
    if most is not None and lag > most:
        said = f"{lag:,} offsets wait; `health.max_lag_records` is {most:,}"
        if found.at_work:
            return _check("lag", "problem", f"{said}. A run is at work", runs(archive.archive))
        return _check("lag", "problem", said, run_now(archive.archive))
    return _check("lag", "ok", f"{lag:,} offsets wait")


def _age(archive: Archive, found: Snapshot, now: datetime) -> Finding:
    if not found.ledger_read:
        return _unknown("age", found)
    most = archive.health.max_age or (2 * found.interval + timedelta(hours=1) if found.interval else None)
    age = found.age(now)
    if age is None:
        # Before the first closed hour, the first run counts.
        since = found.begun
        age = None if since is None else now - since
        said = "no hour is closed yet"
    else:
        said = f"hours are closed until {isoformat(found.closed_until)}" if found.closed_until else ""
    if most is None or age is None or age <= most:
        return _check("age", "ok", said)
    return _check(
        "age",
        "problem",
        f"{said}, {span(age)} ago; the limit is {span(most)}",
        last_hours(archive.archive, 24),
    )


def _troubles(found: Snapshot) -> Iterator[Finding]:
    for name in _IN_ORDER:
        these = [t for t in found.troubles if _OF_TROUBLES.get(t.kind, "brokers") == name]
        if these:
            yield _of(name, these)
        elif name != "runs" and not (found.state if name == "brokers" else found.ledger_read):
            yield _unknown(name, found)
        else:
            yield _check(name, "ok", "nothing to report")


def _of(name: str, findings: Iterable[Finding]) -> Finding:
    """Return the check that sums up these findings: the first one in full."""
    these = sorted(findings, key=lambda finding: finding.severity != "problem")
    # The first one has its actions; a moved group is one finding for every partition.
    first, more = these[0], f" (and {len(these) - 1} more)" if len(these) > 1 else ""
    return Finding(
        kind=name,
        severity=worst(finding.severity for finding in these),
        observed=f"{first.kind}: {first.text}{more}",
        actions=first.actions,
        brief=first.brief,
        sums_up=tuple(dict.fromkeys(finding.kind for finding in these)),
    )


def _audit(archive: Archive, found: Snapshot, now: datetime) -> Finding:
    if damage := [t for t in found.troubles if _OF_TROUBLES.get(t.kind) == "audit"]:
        return _of("audit", damage)
    if not found.ledger_read:
        return _unknown("audit", found)
    most, again = archive.max_audit_age, [audit_again(archive.archive)]
    last = found.audit.at if found.audit else None
    if last is None and found.begun is None:
        return _check("audit", "ok", "nothing is archived yet")
    said = f"the last audit was at {isoformat(last)}" if last else "there was no audit yet"
    if found.audit_paused:
        audits = audit_dag_id(archive.archive)
        said, again = f"{said}, and DAG {audits} is paused", [unpause(audits), *again]
    since = now - (last or found.begun or now)
    if most is not None and since > most:
        return _check("audit", "warning", f"{said}; `health.max_audit_age` is {span(most)}", *again)
    return _check("audit", "ok", f"{said}: {found.audit.verdict}" if found.audit else said)

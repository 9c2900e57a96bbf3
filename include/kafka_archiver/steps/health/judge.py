"""The checks of one archive. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from kafka_archiver.advice import audit_again, audit_dag_id, dag_id
from kafka_archiver.audit.report import count
from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.steps.health.check import HealthCheck, Verdict, worst
from kafka_archiver.steps.overview.snapshot import Snapshot
from kafka_archiver.steps.status.trouble import Trouble

# The check that reports a trouble, by the trouble's name; `brokers` reports all others.
_OF_TROUBLES = {
    **dict.fromkeys(("failed", "failed for good", "tried again", "date to come"), "runs"),
    **dict.fromkeys(("stuck", "overdue", "paused", "no dag", "no scheduler", "airflow"), "runs"),
    **dict.fromkeys(("unfinished run", "unfinished rebuild"), "plans"),
    **dict.fromkeys(("damaged", "no report"), "audit"),
    "incomplete hours": "hours",
}
# Answers older than these are stale, or say nothing any more.
STALE, TOO_OLD = timedelta(minutes=5), timedelta(minutes=30)
_IN_ORDER = ("hours", "runs", "plans", "brokers")


def judge(archive: Archive, found: Snapshot | None, now: datetime) -> list[HealthCheck]:
    """The archive's own checks, without those that its YAML ignores.

    :param found: None: nobody has looked yet.
    """
    if found is None:
        return [HealthCheck(name="answers", verdict="unknown", found="nobody has looked at the archive yet")]
    checks = (
        _answers(found, now),
        _lag(archive, found),
        _age(archive, found, now),
        *_troubles(found),
        _audit(archive, found, now),
    )
    return [check for check in checks if check.name not in archive.health.ignore]


def _check(name: str, verdict: Verdict, found: str, *do: str) -> HealthCheck:
    return HealthCheck(name=name, verdict=verdict, found=found, do=do)


def _unknown(name: str, found: Snapshot) -> HealthCheck:
    return _check(name, "unknown", f"unknown until the {'brokers answer' if found.ledger_read else 'store answers'}")


def _answers(found: Snapshot, now: datetime) -> HealthCheck:
    doctor = f"airflow archive doctor {found.archive}"
    if found.error:
        return _check("answers", "failing", found.error, doctor)
    if (old := now - found.taken_at) > STALE:
        verdict: Verdict = "unknown" if old > TOO_OLD else "warning"
        return _check(
            "answers", verdict, f"the last answers are of {isoformat(found.taken_at)}, {spelt(old)} ago", doctor
        )
    return _check("answers", "ok", "the store and the brokers answer")


def _lag(archive: Archive, found: Snapshot) -> HealthCheck:
    lag, most = found.lag, archive.health.max_lag_records
    if lag is None:
        return _unknown("lag", found)
    if most is not None and lag > most:
        said = f"{lag:,} offsets wait; `health.max_lag_records` is {most:,}"
        if found.at_work:
            return _check("lag", "failing", f"{said}. A run is at work", f"airflow archive runs {archive.archive}")
        return _check("lag", "failing", said, f"airflow dags trigger {dag_id(archive.archive)}")
    return _check("lag", "ok", f"{lag:,} offsets wait")


def _age(archive: Archive, found: Snapshot, now: datetime) -> HealthCheck:
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
        "failing",
        f"{said}, {spelt(age)} ago; the limit is {spelt(most)}",
        f"airflow archive status {archive.archive} --hours 24",
    )


def _troubles(found: Snapshot) -> Iterator[HealthCheck]:
    for name in _IN_ORDER:
        these = [t for t in found.troubles if _OF_TROUBLES.get(t.name, "brokers") == name]
        if these:
            yield _of(name, these)
        elif name != "runs" and not (found.state if name == "brokers" else found.ledger_read):
            yield _unknown(name, found)
        else:
            yield _check(name, "ok", "nothing to report")


def _of(name: str, troubles: Iterable[Trouble]) -> HealthCheck:
    these = sorted(troubles, key=lambda trouble: trouble.severity != "problem")
    verdict = worst("failing" if t.severity == "problem" else "warning" for t in these)
    # The first one has its commands; a moved group is one trouble for every partition.
    more = f" (and {len(these) - 1} more)" if len(these) > 1 else ""
    return _check(name, verdict, f"{these[0].name}: {these[0].found}{more}", *these[0].do)


def _audit(archive: Archive, found: Snapshot, now: datetime) -> HealthCheck:
    if damage := [t for t in found.troubles if _OF_TROUBLES.get(t.name) == "audit"]:
        return _of("audit", damage)
    if not found.ledger_read:
        return _unknown("audit", found)
    most, again = archive.health.max_audit_age, [audit_again(archive.archive)]
    last = found.audit.at if found.audit else None
    if last is None and found.begun is None:
        return _check("audit", "ok", "nothing is archived yet")
    said = f"the last audit was at {isoformat(last)}" if last else "there was no audit yet"
    if found.audit_paused:
        audits = audit_dag_id(archive.archive)
        said, again = f"{said}, and DAG {audits} is paused", [f"airflow dags unpause {audits}", *again]
    since = now - (last or found.begun or now)
    if most is not None and since > most:
        return _check("audit", "warning", f"{said}; `health.max_audit_age` is {spelt(most)}", *again)
    return _check("audit", "ok", f"{said}: {found.audit.verdict}" if found.audit else said)


def spelt(time: timedelta) -> str:
    """A time in words: 1 second, 90 minutes, 5 hours, 3 days."""
    seconds = time.total_seconds()
    if seconds < 59.5:
        return count(round(seconds), "second")
    if seconds < 7200:
        return count(round(seconds / 60), "minute")
    return count(round(seconds / 3600), "hour") if seconds < 48 * 3600 else count(round(seconds / 86400), "day")

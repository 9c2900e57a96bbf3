"""Watch for trouble that an archive's own runs cannot report, because none of them starts. A few small reads.

The brokers are asked only while the archive's DAG is paused.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from kafka_archiver.audit.report import same_findings
from kafka_archiver.config import Archive
from kafka_archiver.config.times import longest_interval
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import dag_id, unpause
from kafka_archiver.messages.wording import span
from kafka_archiver.model.findings import Finding, problem
from kafka_archiver.model.object_keys import audit_document
from kafka_archiver.state.health import judge
from kafka_archiver.state.overview.snapshot import Snapshot
from kafka_archiver.state.overview.take_snapshot import last_audit
from kafka_archiver.state.status.damage import of_audit, read_head
from kafka_archiver.values.documents import UtcTime, Value


class WatchedArchive(Value):
    """An archive as the watchdog sees it.

    `limit`: the most time since the end of the last closed hour; None: no limit. `lag`: the offsets that wait, None if
    unknown or not asked. `lag_is_unknown`: the DAG is paused, and the brokers do not say how much waits. `paused`,
    `late`, `audit`: what is wrong, None if nothing is. `damage`: tells this damage from other damage; None: none is
    known. `report`: the key of the last audit's report.
    """

    closed_until: UtcTime | None
    limit: timedelta | None
    lag: int | None = None
    lag_is_unknown: bool = False
    paused: Finding | None = None
    late: bool = False
    audit: Finding | None = None
    damage: str | None = None
    report: str


def watch(
    archive: Archive,
    ledger: Ledger,
    is_paused: bool,
    audit_is_paused: bool,
    lag: Callable[[], int | None],
    first_lag: int | None,
    since: datetime,
    moment: datetime,
) -> WatchedArchive:
    """Look at an archive.

    :param lag: asks the brokers for the offsets that wait.
    :param first_lag: the offsets that waited when the DAG was first seen paused.
    :param since: when the watchdog first saw the archive.
    """
    progress = ledger.progress()
    snapshot = Snapshot(
        archive=archive.archive,
        taken_at=moment,
        interval=longest_interval(archive.schedule) if archive.schedule else None,
        begun=progress.begun if progress else None,
        closed_until=progress.closed_until if progress else None,
        incomplete=(),
        audit=last_audit(ledger),
        audit_paused=audit_is_paused,
        # 0: a missing audit counts once it is late, not after the first run.
        troubles=tuple(of_audit(ledger, 0)),
    )
    checks = {check.kind: check for check in judge(archive, snapshot, moment)}
    audit, limit = checks.get("audit"), _limit(archive, snapshot)
    age = moment - (snapshot.closed_until or since)
    is_late = limit is not None and age > limit
    waiting = lag() if is_paused and progress else None
    return WatchedArchive(
        closed_until=snapshot.closed_until,
        limit=limit,
        lag=waiting,
        lag_is_unknown=bool(is_paused and progress and waiting is None),
        paused=_paused(archive.archive, waiting, first_lag, age, is_late) if is_paused and progress else None,
        late=is_late and not is_paused,
        audit=audit if audit and audit.severity != "ok" and (_is_audited(archive) or snapshot.troubles) else None,
        damage=_damage(ledger) if snapshot.audit and snapshot.audit.verdict == "damaged" else None,
        report=audit_document(archive.archive),
    )


def _is_audited(archive: Archive) -> bool:
    """Return True if somebody expects audits: a schedule does, or a limit in the YAML."""
    return archive.audit_schedule is not None or "max_audit_age" in archive.health.model_fields_set


def _limit(archive: Archive, snapshot: Snapshot) -> timedelta | None:
    """Return the archive's own limit, or two intervals of the schedule and an hour; None for an archive run by hand."""
    if snapshot.interval is None:
        return None
    if archive.alerts.max_age is not None:
        return archive.alerts.max_age
    if "age" in archive.health.ignore:
        return None
    return archive.health.max_age or 2 * snapshot.interval + timedelta(hours=1)


def _paused(archive: str, waiting: int | None, first_lag: int | None, age: timedelta, is_late: bool) -> Finding | None:
    """Return the check of a paused DAG: failing once more waits than when it was first seen paused, or it is late."""
    if waiting == 0 or not (is_late or (waiting and first_lag is not None and waiting > first_lag)):
        return None
    dag = dag_id(archive)
    waiting_text = "how many offsets wait is unknown" if waiting is None else f"{waiting:,} offsets wait"
    observed = f"DAG {dag} is paused, and {waiting_text}; the last closed hour ended {span(age)} ago"
    return problem("paused", observed, unpause(dag))


def _damage(ledger: Ledger) -> str | None:
    try:
        head = read_head(ledger)
    except ValueError:
        return None
    return same_findings((f["kind"], f["where"]) for f in head.errors) if head and head.damaged else None

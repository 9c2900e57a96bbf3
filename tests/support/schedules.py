"""Schedules for tests: none of their runs comes due during a test, at any hour."""

from datetime import UTC, datetime, timedelta

from croniter import croniter  # type: ignore[import-untyped]

# Longer than any test may take.
QUIET = timedelta(minutes=15)


def quiet_hours(moment: datetime | None = None) -> tuple[str, datetime]:
    """An hourly schedule that was last due half an hour ago, and that time."""
    last = (moment or datetime.now(UTC)).replace(second=0, microsecond=0) - timedelta(minutes=30)
    return f"{last.minute} * * * *", last


def require_quiet(dag: str, schedule: str | None, moment: datetime | None = None) -> None:
    """Refuse a DAG whose schedule would start a run beside those of a test.

    DAGs of audits must have no schedule: Airflow at once starts a daily run that was due in the last two hours.
    """
    moment = moment or datetime.now(UTC)
    # By hand, or by events.
    if schedule in (None, "Partitioned Asset"):
        return
    assert not dag.startswith("audit_"), f"{dag} has the schedule {schedule!r}: set `schedule: null` in its archive"
    due = croniter(schedule, moment).get_next(datetime)
    assert due - moment > QUIET, f"{dag} would run at {due} by itself: use tests.support.schedules.quiet_hours"

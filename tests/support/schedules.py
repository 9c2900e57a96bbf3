"""Schedules of tests that do not depend on the hour: none of their runs comes due while a test is at work."""

from datetime import UTC, datetime, timedelta

from croniter import croniter  # type: ignore[import-untyped]

# Longer than any test may take.
QUIET = timedelta(minutes=15)


def quiet_hours(now: datetime | None = None) -> tuple[str, datetime]:
    """A schedule of every hour that fired half an hour ago, and when that was."""
    last = (now or datetime.now(UTC)).replace(second=0, microsecond=0) - timedelta(minutes=30)
    return f"{last.minute} * * * *", last


def require_quiet(dag: str, schedule: str | None, now: datetime | None = None) -> None:
    """Refuse a DAG whose schedule brings a run of its own beside those of a test.

    One that audits has none: Airflow runs at once what was due in the last two hours of a day's schedule.
    """
    now = now or datetime.now(UTC)
    if schedule is None:
        return
    assert not dag.startswith("audit_"), f"{dag} would run at {schedule!r} by itself: `schedule: null` in its archive"
    due = croniter(schedule, now).get_next(datetime)
    assert due - now > QUIET, f"{dag} would run at {due} by itself: tests.support.schedules.quiet_hours does not"

"""The schedule of an archive, and the interval of each DAG run. `dags/audit` and `dags/watchdog` have their own."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal
from zoneinfo import ZoneInfo

import pendulum
from airflow.sdk import CronDataIntervalTimetable
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable as Scheduler
from pendulum import DateTime

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import Interval

# The longest time between the trigger and the start of a run, when no other run is at work.
_JUST_NOW = timedelta(minutes=10)
# Runs that a person, a program, another DAG (TriggerDagRunOperator) or `airflow assets materialize` has started.
_TRIGGERED = ("manual", "operator_triggered", "asset_materialization")


def timetable(archive: Archive) -> CronDataIntervalTimetable | None:
    """Return the DAG's schedule with data intervals; Airflow's "@hourly" alone would have none.

    :raises ValueError: Airflow's scheduler would stop at a clock change of the time zone.
    """
    if archive.schedule is None:
        return None
    for change, by in _odd_changes(archive.timezone, datetime.now(UTC).date()):
        _require_past(archive.schedule, archive.timezone, change, by)
    return CronDataIntervalTimetable(archive.schedule, timezone=archive.timezone)


@lru_cache
def _odd_changes(zone: str, today: date) -> tuple[tuple[datetime, timedelta], ...]:
    """Return the days of the next year on which clocks change by a fraction of an hour, and by how much."""
    midnights = [datetime(today.year, today.month, today.day, tzinfo=UTC) + timedelta(days=n) for n in range(400)]
    offsets = [moment.astimezone(ZoneInfo(zone)).utcoffset() or timedelta(0) for moment in midnights]
    changes = [(m, abs(after - before)) for m, (before, after) in zip(midnights, pairwise(offsets), strict=False)]
    return tuple((moment, by) for moment, by in changes if by % timedelta(hours=1))


def _require_past(schedule: str, zone: str, change: datetime, by: timedelta) -> None:
    scheduler, last = Scheduler(schedule, zone), None
    begin, end = pendulum.instance(change).subtract(days=1), pendulum.instance(change).add(days=2)
    try:
        while last is None or last.end < end:
            last = _next(scheduler, last, begin)
    except ValueError:
        raise ValueError(
            f"`timezone`: with this schedule Airflow does not get past {change:%Y-%m-%d} in {zone}, where clocks "
            f"change by {by}. Expected `UTC` (hours in the store are UTC in any case), or another schedule"
        ) from None


def interval_of(archive: Archive, dag_run: Any) -> Interval:
    """Return the interval of a DAG run; for a manual run without one, the last complete interval.

    Never by the logical date: the ledger names a run after the start of its interval.
    """
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    if start is not None and end is not None and start < end:
        return Interval(start=start, end=end)
    return last_interval(archive, dag_run.run_after)


def is_triggered(dag_run: Any) -> bool:
    """Return True if neither the schedule nor a backfill has started the run."""
    return dag_run.run_type in _TRIGGERED


def takes_all(dag_run: Any) -> bool:
    """Return True if the run was triggered without a date: it archives all that is in Kafka.

    Airflow's form and its operator fill in the present, so a date of just now is none.
    """
    if not is_triggered(dag_run):
        return False
    date, start = dag_run.logical_date, dag_run.start_date
    return date is None or (start is not None and abs(start - date) < _JUST_NOW)


def triggered_if_cleared(dag_run: Any) -> datetime | None:
    """Return when a run that somebody has cleared was triggered: what it has done since, it need not do again."""
    triggered: datetime = dag_run.run_after
    # A backfill's date is that of its interval.
    return triggered if dag_run.clear_number and is_triggered(dag_run) else None


def second_before(moment: datetime) -> Interval:
    """Return the interval of a run outside the schedule: the second before `moment`.

    It begins at no full minute, where an interval of a schedule may begin: the ledger files a run by its interval's
    start.
    """
    end = moment.astimezone(UTC).replace(microsecond=0)
    end -= timedelta(seconds=end.second == 1)
    return Interval(start=end - timedelta(seconds=1), end=end)


def last_interval(archive: Archive, moment: datetime) -> Interval:
    """Return the last interval that was complete at `moment`.

    Without a schedule, the interval of a run is the second before it.
    """
    if archive.schedule is None:
        return second_before(moment)
    # A schedule of five fields fires at whole minutes. Many archives ask at the same time, and the answer costs 10 ms.
    return _last_complete(archive.schedule, archive.timezone, moment.astimezone(UTC).replace(second=0, microsecond=0))


@lru_cache(maxsize=256)
def _last_complete(schedule: str, zone: str, moment: datetime) -> Interval:
    scheduler, local_moment = Scheduler(schedule, zone), pendulum.instance(moment)
    # Around a clock change, Airflow infers a wrong or empty interval for a manual run. So start hours earlier and step
    # from interval to interval, as the scheduler does.
    begin = scheduler.infer_manual_data_interval(run_after=local_moment).start.subtract(hours=3)
    interval = following = scheduler.infer_manual_data_interval(run_after=begin)
    while following.end <= local_moment:
        interval, following = following, _next(scheduler, following)
    return Interval(start=interval.start, end=interval.end)


def interval_from(archive: Archive, start: datetime) -> Interval:
    """Return the interval that starts at a moment; without a schedule, the second from that moment on.

    :raises ConfigError: no interval of the schedule starts then.
    """
    if archive.schedule is None:
        return Interval(start=start, end=start + timedelta(seconds=1))
    earliest = TimeRestriction(earliest=pendulum.instance(start), latest=None, catchup=True)
    scheduler = Scheduler(archive.schedule, archive.timezone)
    dag_run_info = scheduler.next_dagrun_info(last_automated_data_interval=None, restriction=earliest)
    if dag_run_info is None or dag_run_info.data_interval is None or dag_run_info.data_interval.start != start:
        before = last_interval(archive, start).end
        raise ConfigError(
            f"No interval of the schedule {archive.schedule!r} starts at {isoformat(start)}; "
            f"the interval that includes this time starts at {isoformat(before)}."
        )
    return Interval(start=start, end=dag_run_info.data_interval.end)


def _next(scheduler: Scheduler, last: DataInterval | None, earliest: DateTime | None = None) -> DataInterval:
    info = scheduler.next_dagrun_info(
        last_automated_data_interval=last, restriction=TimeRestriction(earliest=earliest, latest=None, catchup=True)
    )
    assert info is not None
    assert info.data_interval is not None
    return info.data_interval


def origin_of(dag_run: Any) -> Literal["scheduled", "manual", "backfill"]:
    """Return the origin of the run's plan. A backfill does not move the group, all other runs do."""
    if dag_run.run_type == "backfill":
        return "backfill"
    return "manual" if is_triggered(dag_run) else "scheduled"

"""When an archive runs, and which interval a DAG run is about."""

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
from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ConfigError
from kafka_archiver.intervals import Interval

# Between the trigger of a run and its start, when nothing else is at work.
_JUST_NOW = timedelta(minutes=10)


def timetable(archive: Archive) -> CronDataIntervalTimetable | None:
    """The DAG's schedule. A preset like "@hourly" alone would mean moments, not intervals.

    :raises ValueError: Airflow would stop at a change of clocks.
    """
    if archive.schedule is None:
        return None
    for change, by in _odd_changes(archive.timezone, datetime.now(UTC).date()):
        _require_past(archive.schedule, archive.timezone, change, by)
    return CronDataIntervalTimetable(archive.schedule, timezone=archive.timezone)


@lru_cache
def _odd_changes(zone: str, today: date) -> tuple[tuple[datetime, timedelta], ...]:
    """The days of the next year within which clocks change by no whole hours, and by how much."""
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
            f"change by {by}. Expected `UTC`, which hours in the store are in anyway, or another schedule"
        ) from None


def interval_of(archive: Archive, dag_run: Any) -> Interval:
    """The interval of a DAG run; of one triggered by hand without any, the last that is complete.

    Never the logical date: a run's place in the ledger is where its interval starts.
    """
    start, end = dag_run.data_interval_start, dag_run.data_interval_end
    if start is not None and end is not None and start < end:
        return Interval(start=start, end=end)
    return last_interval(archive, dag_run.run_after)


def by_hand(dag_run: Any) -> bool:
    """Whether somebody has just triggered the run, without a date: to archive what there is now."""
    moment, start = dag_run.logical_date or dag_run.run_after, dag_run.start_date
    return dag_run.run_type == "manual" and start is not None and abs(start - moment) < _JUST_NOW


def second_before(moment: datetime) -> Interval:
    """The interval of a run that belongs to no interval of a schedule.

    It begins at no whole minute, where one of a schedule may: a run's place in the ledger is where its interval starts.
    """
    end = moment.astimezone(UTC).replace(microsecond=0)
    end -= timedelta(seconds=end.second == 1)
    return Interval(start=end - timedelta(seconds=1), end=end)


def last_interval(archive: Archive, moment: datetime) -> Interval:
    """The last interval that was complete at `moment`.

    An archive without a schedule takes what is there whenever it is asked: each run has the second before it.
    """
    if archive.schedule is None:
        return second_before(moment)
    scheduler, now = Scheduler(archive.schedule, archive.timezone), pendulum.instance(moment)
    # What Airflow infers for a run by hand is off around a change of clocks, even empty: from hours before it, one
    # by one as the scheduler goes, the intervals tile.
    begin = scheduler.infer_manual_data_interval(run_after=now).start.subtract(hours=3)
    found = following = scheduler.infer_manual_data_interval(run_after=begin)
    while following.end <= now:
        found, following = following, _next(scheduler, following)
    return Interval(start=found.start, end=found.end)


def interval_from(archive: Archive, start: datetime) -> Interval:
    """The interval that starts at a moment; of an archive without a schedule the second from then.

    :raises ConfigError: none of the schedule's starts there.
    """
    if archive.schedule is None:
        return Interval(start=start, end=start + timedelta(seconds=1))
    earliest = TimeRestriction(earliest=pendulum.instance(start), latest=None, catchup=True)
    scheduler = Scheduler(archive.schedule, archive.timezone)
    found = scheduler.next_dagrun_info(last_automated_data_interval=None, restriction=earliest)
    if found is None or found.data_interval is None or found.data_interval.start != start:
        before = last_interval(archive, start).end
        raise ConfigError(
            f"No interval of the schedule {archive.schedule!r} starts at {isoformat(start)}; "
            f"the one that includes it starts at {isoformat(before)}."
        )
    return Interval(start=start, end=found.data_interval.end)


def _next(scheduler: Scheduler, last: DataInterval | None, earliest: DateTime | None = None) -> DataInterval:
    info = scheduler.next_dagrun_info(
        last_automated_data_interval=last, restriction=TimeRestriction(earliest=earliest, latest=None, catchup=True)
    )
    assert info is not None
    assert info.data_interval is not None
    return info.data_interval


def origin_of(dag_run: Any) -> Literal["scheduled", "backfill"]:
    """Whether the run may move the group (all but a backfill)."""
    return "backfill" if dag_run.run_type == "backfill" else "scheduled"

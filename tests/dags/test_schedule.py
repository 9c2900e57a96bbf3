"""The interval that a DAG run is about."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable as Scheduler

from kafka_archiver.orchestration.dag_run.schedule import (
    interval_of,
    last_interval,
    origin_of,
    second_before,
    timetable,
)
from tests.dags.conftest import MakeArchive

pytestmark = pytest.mark.dags


def run(**fields: Any) -> SimpleNamespace:
    none = dict.fromkeys(("data_interval_start", "data_interval_end", "logical_date", "run_after"))
    return SimpleNamespace(**{**none, "run_type": "scheduled", **fields})


def at(hour: int, minute: int = 0, day: int = 21, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_the_data_interval_counts_and_never_the_logical_date(archive: MakeArchive) -> None:
    interval = interval_of(archive(), run(data_interval_start=at(5), data_interval_end=at(6), logical_date=at(9)))
    assert (interval.start, interval.end, interval.id) == (at(5), at(6), "20261121T050000Z")


def test_a_run_by_hand_without_an_interval_is_about_the_last_complete_one(archive: MakeArchive) -> None:
    interval = interval_of(archive(), run(run_after=at(9, 30), run_type="manual"))
    assert (interval.start, interval.end) == (at(8), at(9))
    assert last_interval(archive(), at(9)).end == at(9)
    assert last_interval(archive("schedule: '15 */6 * * *'\n"), at(9)).start == at(0, 15)


def test_an_interval_without_width_is_none(archive: MakeArchive) -> None:
    interval = interval_of(
        archive(), run(data_interval_start=at(9, 30), data_interval_end=at(9, 30), run_after=at(9, 30))
    )
    assert (interval.start, interval.end) == (at(8), at(9))


@pytest.mark.parametrize(
    ("moment", "start", "end"),
    [
        # The day on which clocks go back has 25 hours, the day on which they go forward 23.
        (at(12, day=26, month=10), at(22, day=24, month=10), at(23, day=25, month=10)),
        (at(12, day=30, month=3), at(23, day=28, month=3), at(22, day=29, month=3)),
    ],
)
def test_days_of_a_time_zone_are_as_long_as_they_are_there(
    archive: MakeArchive, moment: datetime, start: datetime, end: datetime
) -> None:
    interval = last_interval(archive("schedule: '@daily'\ntimezone: Europe/Berlin\n"), moment)
    assert (interval.start, interval.end) == (start, end)


def test_a_run_of_its_own_begins_where_no_interval_of_a_schedule_does() -> None:
    for second in range(60):
        moment_before = second_before(at(9) + timedelta(seconds=second, milliseconds=600))
        assert moment_before.start.second
        assert moment_before.end - moment_before.start == timedelta(seconds=1)
        assert moment_before.end <= at(9) + timedelta(seconds=second)


def test_an_archive_without_schedule_takes_what_is_there_when_it_is_asked(archive: MakeArchive) -> None:
    moment = datetime(2026, 11, 21, 9, 30, 15, 700_000, tzinfo=UTC)
    interval = interval_of(archive("schedule: null\n"), run(run_after=moment, run_type="manual"))
    assert interval.end == moment.replace(microsecond=0)
    assert interval.id == "20261121T093014Z"


@pytest.mark.parametrize(
    ("run_type", "origin"),
    [
        ("backfill", "backfill"),
        ("scheduled", "scheduled"),
        ("manual", "manual"),
        ("operator_triggered", "manual"),
        ("asset_materialization", "manual"),
        ("asset_triggered", "scheduled"),
    ],
)
def test_only_a_backfill_leaves_the_group_alone(run_type: str, origin: str) -> None:
    from airflow.sdk.api.datamodels._generated import DagRunType

    assert origin_of(run(run_type=DagRunType(run_type))) == origin


# At, before and after the hour that comes twice or never; by day, by hour, by quarter.
SCHEDULES = (
    "@hourly",
    "@daily",
    "*/15 * * * *",
    "15 */6 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "5 2,3 * * *",
    "0 1-3 * * *",
)
# Clocks go forward, and back: in Berlin, St John's and on the Chatham Islands.
CHANGES = {
    "Europe/Berlin": (at(1, day=29, month=3), at(1, day=25, month=10)),
    "America/St_Johns": (at(5, 30, day=8, month=3), at(4, 30, day=1, month=11)),
    "Pacific/Chatham": (at(14, day=26, month=9), at(14, day=4, month=4)),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("zone", CHANGES)
def test_intervals_tile_the_time_also_where_clocks_change(archive: MakeArchive, zone: str, schedule: str) -> None:
    scheduled = archive(f"schedule: '{schedule}'\ntimezone: {zone}\n")
    scheduler = Scheduler(scheduled.schedule, scheduled.timezone)
    for change in CHANGES[zone]:
        for_ever = TimeRestriction(pendulum.instance(change - timedelta(days=2)), None, catchup=True)
        last, intervals = None, []
        while last is None or last.end <= change + timedelta(days=2):
            info = scheduler.next_dagrun_info(last_automated_data_interval=last, restriction=for_ever)
            assert info is not None
            last = info.data_interval
            intervals.append((last.start, last.end))
        assert len(intervals) >= 3
        assert all(start < end for start, end in intervals)
        assert [end for _, end in intervals[:-1]] == [start for start, _ in intervals[1:]]
        # A run by hand is about one of them: the last that was complete.
        for (start, end), (_, following) in pairwise(intervals):
            if abs(start - change) > max(timedelta(hours=1), 2 * (end - start)):
                continue
            for moment in (end, end + (following - end) / 2, following - timedelta(seconds=1)):
                by_hand = last_interval(scheduled, moment)
                assert (by_hand.start, by_hand.end) == (start, end), moment


@pytest.mark.parametrize("schedule", ["@hourly", "0 * * * *"])
def test_a_schedule_that_stops_where_clocks_change_by_half_an_hour_is_refused(
    archive: MakeArchive, schedule: str
) -> None:
    with pytest.raises(ValueError, match=r"`timezone`: .* does not get past .* change by 0:30:00\. Expected `UTC`"):
        timetable(archive(f"schedule: '{schedule}'\ntimezone: Australia/Lord_Howe\n"))


@pytest.mark.parametrize(
    ("zone", "schedule"),
    [
        ("Australia/Lord_Howe", "30 2 * * *"),
        ("Australia/Lord_Howe", "*/15 * * * *"),
        ("Antarctica/Troll", "@hourly"),
    ],
)
def test_one_that_goes_on_is_not(archive: MakeArchive, zone: str, schedule: str) -> None:
    assert timetable(archive(f"schedule: '{schedule}'\ntimezone: {zone}\n"))

"""Clocks that are wrong: an hour is closed by the one that is behind, and what is out of all proportion plans nothing.

The store's clock and the brokers' are right here; it is Airflow's machine that is fast, or slow.
"""

import logging
import uuid
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_archiver.messages.errors import ArchiverError, PermanentError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.plan import plan
from tests.support.lake import HOUR, Lake, hour

P0 = TopicPartition("orders", 0)
MINUTE = timedelta(minutes=1)


def lake_at(moment: datetime, end: int) -> Lake:
    """A topic with a record an hour, the last of which came just before that moment."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, end)})
    lake.now = moment
    return lake


def go(lake: Lake, number: int, fast: timedelta) -> None:
    """The run of an hour, at the right time that the lake has, by a planner whose clock is fast."""
    lake.context = replace(lake.context, clock=lambda: lake.now + fast)
    lake.finish(plan(lake.context, hour(number), "scheduled"), "settled")


def verdict(lake: Lake, number: int) -> tuple[str, int, int] | None:
    proof = lake.ledger.hour(lake.brokers.first + number)
    return (proof.status, proof.rows, proof.late_rows) if proof else None


def test_an_airflow_ten_minutes_fast_does_not_close_an_hour_early(caplog: pytest.LogCaptureFixture) -> None:
    """At 05:50 its clock says 06:00, and the run of five o'clock is due: ten minutes of records are still to come."""
    lake = lake_at(hour(5).end - 10 * MINUTE, 6)
    with caplog.at_level(logging.WARNING):
        go(lake, 5, 10 * MINUTE)
    assert "synchronise both with NTP" in caplog.text
    assert verdict(lake, 4) == ("complete", 1, 0)
    assert verdict(lake, 5) == ("open", 1, 0)
    # One more record before six, and the hour from six o'clock.
    lake.logs[P0] = Range(0, 8)
    lake.odd[P0, 6] = {"timestamp": (lake.brokers.first + 5) * HOUR + 55 * 60_000}
    lake.odd[P0, 7] = {"timestamp": (lake.brokers.first + 6) * HOUR}
    lake.now += timedelta(hours=1)
    go(lake, 6, 10 * MINUTE)
    assert verdict(lake, 5) == ("complete", 2, 0)
    assert verdict(lake, 6) == ("open", 1, 0)


@pytest.mark.parametrize("fast", [timedelta(hours=2), timedelta(hours=-2), 10 * MINUTE + timedelta(seconds=1)])
def test_a_planner_whose_clock_is_far_off_plans_nothing(fast: timedelta) -> None:
    """Two hours fast it would plan first what comes last, and close two hours that are not over."""
    lake = lake_at(hour(5).end + MINUTE, 6)
    with pytest.raises(PermanentError, match=r"with clocks so far apart it is unknown which hours are over.*NTP"):
        go(lake, 5 if fast > timedelta(0) else 2, fast)
    assert lake.ledger.planned(1) is None


def test_a_planner_two_hours_fast_does_not_reverse_the_order_of_settling() -> None:
    """Nor does one that is ten minutes slow behind one that is ten minutes fast: the line has the order, not clocks."""
    lake = lake_at(hour(4).end + MINUTE, 5)
    go(lake, 4, 10 * MINUTE)
    with pytest.raises(PermanentError, match="clocks so far apart"):
        go(lake, 5, timedelta(hours=2))
    lake.now = hour(5).end + 6 * MINUTE
    lake.logs[P0] = Range(0, 6)
    go(lake, 5, 10 * MINUTE)
    # A run by hand, of an interval of its own.
    lake.logs[P0] = Range(0, 7)
    lake.odd[P0, 6] = {"timestamp": (lake.brokers.first + 6) * HOUR}
    go(lake, 3, -10 * MINUTE)
    plans = list(lake.ledger.following(0))
    assert [(p.number, p.interval) for p in plans] == [(1, hour(4)), (2, hour(5)), (3, hour(3))]
    # By its clock the last planner was the one before the last …
    assert plans[2].planned_at < plans[1].planned_at
    # … and what is closed stays closed.
    assert [verdict(lake, number) for number in (4, 5, 6)] == [("complete", 1, 0), ("complete", 1, 0), ("open", 1, 0)]
    assert (lake.progress.settled, lake.progress.closed_until) == (3, hour(5).end)


@settings(deadline=None, max_examples=50)
@given(skews=st.lists(st.integers(-30, 30), min_size=1, max_size=5))
def test_no_hour_is_closed_before_it_is_over_whatever_clocks_say(skews: list[int]) -> None:
    lake, closed = lake_at(hour(0).end, 1), None
    for number, minutes in enumerate(skews):
        # When that clock says that the hour is over.
        lake.now = max(lake.now, hour(number).end - minutes * MINUTE)
        lake.logs[P0] = Range(0, number + 1)
        try:
            go(lake, number, minutes * MINUTE)
        except ArchiverError:
            assert abs(minutes) > 10
        progress = lake.ledger.progress()
        until = progress.closed_until if progress else None
        assert until is None or until <= lake.now
        assert closed is None or (until is not None and until >= closed)
        closed = until

"""Hours, milliseconds and names of runs, from 1970 to 9999."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kafka_archiver.values.intervals import (
    LAST_MS,
    MS_PER_HOUR,
    Interval,
    from_ms,
    hour_of,
    hour_start,
    parse_run_id,
    run_id,
    to_ms,
)

pytestmark = pytest.mark.unit

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# A day short of what dates can name, so that every zone can name it too.
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=zones)  # noqa: DTZ001 - hypothesis adds it
record_times = st.integers(0, LAST_MS)


@given(record_times)
def test_milliseconds_and_instants_are_exact_in_both_directions(milliseconds: int) -> None:
    assert to_ms(from_ms(milliseconds)) == milliseconds


@given(record_times)
def test_a_record_is_filed_in_the_hour_that_holds_its_time(milliseconds: int) -> None:
    hour = hour_of(milliseconds)
    assert hour is not None
    assert to_ms(hour_start(hour)) <= milliseconds < to_ms(hour_start(hour)) + MS_PER_HOUR


@pytest.mark.parametrize(
    ("milliseconds", "start"),
    [
        (0, "1970-01-01T00"),
        (MS_PER_HOUR - 1, "1970-01-01T00"),
        (MS_PER_HOUR, "1970-01-01T01"),
        (LAST_MS, "9999-12-31T23"),
    ],
)
def test_hours_begin_with_their_first_and_end_with_their_last_millisecond(milliseconds: int, start: str) -> None:
    hour = hour_of(milliseconds)
    assert hour is not None
    assert f"{hour_start(hour):%Y-%m-%dT%H}" == start


@pytest.mark.parametrize("milliseconds", [-1, -(2**63), LAST_MS + 1, 2**63 - 1])
def test_a_record_without_a_time_that_dates_can_name_has_no_hour(milliseconds: int) -> None:
    assert hour_of(milliseconds) is None


@given(moments)
def test_a_run_s_name_is_its_start_in_utc_to_the_second(moment: datetime) -> None:
    assert parse_run_id(run_id(moment)) == moment.astimezone(UTC).replace(microsecond=0)


@given(moments, moments)
def test_names_of_runs_sort_as_their_starts_do(start: datetime, other_start: datetime) -> None:
    assert (run_id(start) < run_id(other_start)) == (start.replace(microsecond=0) < other_start.replace(microsecond=0))


WRONG_NAMES = (
    "20261121 2026-11-21T05:00:00Z 20261121t050000z 2026112T050000Z 20261321T050000Z 20261121T050000 20261121T50000Z "
    "２０２６1121T050000Z"
)


@pytest.mark.parametrize("text", ["", " 20261121T050000Z", "20261121T050000Z\n", *WRONG_NAMES.split()])
def test_nothing_else_is_the_name_of_a_run(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_run_id(text)


def test_an_interval_is_named_and_shown_in_utc() -> None:
    start = datetime(2026, 11, 21, 6, tzinfo=timezone(timedelta(hours=1)))
    interval = Interval(start=start, end=start + timedelta(hours=1))
    assert interval.id == "20261121T050000Z"
    assert str(interval) == "[2026-11-21 05:00:00, 2026-11-21 06:00:00) UTC"


@pytest.mark.parametrize("moment", ["2026-11-21T05:00:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_without_a_zone_or_beyond_all_dates_is_refused(moment: str) -> None:
    with pytest.raises(ValidationError, match=re.escape("a time needs a zone") + "|no such time in UTC"):
        Interval.model_validate({"start": moment, "end": moment})


def test_airflows_own_times_are_taken() -> None:
    """They are pendulum's: a subclass of datetime that subtracts and divides otherwise."""
    interval = Interval(
        start=pendulum.datetime(2026, 11, 21, 5), end=pendulum.datetime(2026, 11, 21, 7, tz="Europe/Paris")
    )
    assert type(interval.start) is datetime
    assert to_ms(interval.start) == to_ms(datetime(2026, 11, 21, 5, tzinfo=UTC))
    assert interval.end == datetime(2026, 11, 21, 6, tzinfo=UTC)

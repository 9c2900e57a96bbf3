"""Tests on a real Airflow must not depend on the hour: one failed at 04:30, beside the audit of 03:20."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.schedules import QUIET, quiet_hours, require_quiet

MOMENTS = st.integers(0, 366 * 86_400).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s))


@given(MOMENTS)
def test_a_quiet_schedule_fired_half_an_hour_ago_and_does_not_during_a_test(moment: datetime) -> None:
    schedule, last = quiet_hours(moment)
    assert timedelta(minutes=30) <= moment - last < timedelta(minutes=31)
    for passed in (timedelta(0), timedelta(minutes=10)):
        require_quiet("archive_x", schedule, moment + passed)


@given(MOMENTS)
def test_an_audit_with_a_schedule_is_refused_at_any_hour(moment: datetime) -> None:
    with pytest.raises(AssertionError, match="`schedule: null`"):
        require_quiet("audit_x", "20 3 * * *", moment)
    require_quiet("audit_x", None, moment)


@given(MOMENTS)
def test_a_schedule_that_fires_soon_is_refused(moment: datetime) -> None:
    soon = moment.replace(second=0) + QUIET
    with pytest.raises(AssertionError, match="by itself"):
        require_quiet("archive_x", f"{soon.minute} * * * *", moment)

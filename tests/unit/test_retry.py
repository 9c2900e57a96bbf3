"""Backoff: how often, how long, and what it says when it gives up."""

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.store.retry import Backoff

pytestmark = pytest.mark.unit


class Time:
    """A clock that only sleeping moves. Each wait is the longest that may be."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.drawn: list[tuple[float, float]] = []

    def monotonic(self) -> float:
        return self.now

    def uniform(self, low: float, high: float) -> float:
        self.drawn.append((low, high))
        return high

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def run(self, attempt: Callable[[], Any], **settings: Any) -> Any:
        """By this clock."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("tenacity.time", self)
            patched.setattr("tenacity.wait.random", self)
            return Backoff(sleep=self.sleep, **settings).run(attempt)


def failing(times: int | None = None, error: type[Exception] = TransientError) -> Callable[[], int]:
    """Fails so many times (None: always) and then returns how often it was called."""
    calls = itertools.count(1)

    def attempt() -> int:
        call = next(calls)
        if times is None or call <= times:
            raise error(f"failure {call}")
        return call

    return attempt


def test_the_longest_wait_doubles_from_200_ms_up_to_20_s() -> None:
    time = Time()
    assert time.run(failing(10), tries=11) == 11
    assert time.waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20, 20])


def test_the_wait_is_drawn_from_zero_to_its_longest() -> None:
    time = Time()
    time.run(failing(2))
    assert time.drawn == [(0.0, 0.2), (0.0, 0.4)]


def test_after_the_last_try_the_error_says_what_and_how_often() -> None:
    time = Time()
    with pytest.raises(TransientError, match=r"^failure 4 \(tried 4 times in 1 s\)$"):
        time.run(failing(), tries=4)
    assert len(time.waits) == 3


def test_a_single_try_is_a_try() -> None:
    with pytest.raises(TransientError, match=r"^failure 1 \(tried once\)$"):
        Time().run(failing(), tries=1)


def test_time_spent_in_attempts_counts() -> None:
    time = Time()

    def slow() -> None:
        time.now += 60
        raise TransientError("no answer in time")

    with pytest.raises(TransientError, match="tried 5 times in 303 s"):
        time.run(slow)


def test_a_permanent_error_passes_at_once() -> None:
    time = Time()
    with pytest.raises(PermanentError, match=r"^failure 1$"):
        time.run(failing(error=PermanentError))
    with pytest.raises(ValueError, match=r"^failure 1$"):
        time.run(failing(error=ValueError))
    assert time.waits == []


def test_each_retry_is_logged_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Time().run(failing(2), tries=5)
    assert caplog.messages == ["failure 1; try 2 of 5 in 0.2 s", "failure 2; try 3 of 5 in 0.4 s"]


@given(st.integers(1, 3_000), st.floats(0, 10), st.floats(0, 100), st.floats(0, 1_000))
def test_tries_and_total_are_never_exceeded(tries: int, base: float, cap: float, total: float) -> None:
    time, calls = Time(), itertools.count()

    def attempt() -> None:
        next(calls)
        raise TransientError("no answer")

    with pytest.raises(TransientError):
        time.run(attempt, tries=tries, base=base, cap=cap, total=total)
    assert next(calls) <= tries
    assert time.now <= total * (1 + 1e-9)
    assert all(wait <= cap for wait in time.waits)

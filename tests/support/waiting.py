"""Waiting for a condition, with a deadline."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def until(ask: Callable[[], Answer], seconds: float = 30.0, every: float = 0.05) -> Answer:
    """The first true answer; an AssertionError with the last answer if none came in time."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not true within {seconds} s; the last answer was {answer!r}"
        pause.wait(every)
    return answer

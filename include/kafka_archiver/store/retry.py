"""Retries with exponential backoff and full jitter, for any function."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from kafka_archiver.messages.errors import TransientError

Result = TypeVar("Result")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The number of attempts and the waits between them. Times in seconds.

    The wait after failure n is random between 0 and `base · 2^(n-1)`, at most `cap`: full jitter, so that clients
    that failed together do not retry together. No wait starts that would end after `total`.
    """

    tries: int = 10
    total: float = 300.0
    base: float = 0.2
    cap: float = 20.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def run(self, attempt: Callable[[], Result]) -> Result:
        """The result of the first attempt that does not raise `TransientError`. Other errors are raised at once.

        :raises TransientError: the last failure, with the number of tries and their time.
        """
        trying = Retrying(
            retry=retry_if_exception_type(TransientError),
            stop=stop_after_attempt(self.tries) | stop_before_delay(self.total),
            wait=wait_random_exponential(multiplier=self.base, max=self.cap),
            sleep=self.sleep,
            before_sleep=self._say,
            retry_error_callback=_give_up,
        )
        return trying(attempt)

    def _say(self, state: RetryCallState) -> None:
        log.warning(
            "%s; try %d of %d in %.1f s", _error(state), state.attempt_number + 1, self.tries, state.upcoming_sleep
        )


def _give_up(state: RetryCallState) -> NoReturn:
    number, spent = state.attempt_number, state.seconds_since_start or 0
    raise TransientError(
        f"{_error(state)} (tried {'once' if number == 1 else f'{number} times in {spent:.0f} s'})"
    ) from None


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None

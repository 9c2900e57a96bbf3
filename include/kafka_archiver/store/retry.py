"""Trying again: exponential backoff with full jitter. Knows nothing of stores."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kafka_archiver.errors import TransientError

Result = TypeVar("Result")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often to try, and for how long. Times in seconds.

    The wait after failure n is a random part of `base · 2^(n-1)`, at most of `cap`: full jitter, so that clients
    that failed together do not come back together. No wait is begun that would end after `total`.
    """

    tries: int = 10
    total: float = 300.0
    base: float = 0.2
    cap: float = 20.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    uniform: Callable[[float, float], float] = field(default=random.uniform, repr=False)

    def run(self, attempt: Callable[[], Result]) -> Result:
        """The result of the first attempt that does not raise `TransientError`; other errors pass at once.

        :raises TransientError: the last failure, with the number of tries and the time they took.
        """
        began = self.clock()
        failures = 0
        while True:
            try:
                return attempt()
            except TransientError as error:
                failures += 1
                # An exponent without bound would overflow a float long before anybody notices.
                wait = self.uniform(0.0, min(self.cap, self.base * 2.0 ** min(failures - 1, 60)))
                spent = self.clock() - began
                if failures >= self.tries or spent + wait > self.total:
                    times = "once" if failures == 1 else f"{failures} times in {spent:.0f} s"
                    raise TransientError(f"{error} (tried {times})") from None
                log.warning("%s; try %d of %d in %.1f s", error, failures + 1, self.tries, wait)
            self.sleep(wait)

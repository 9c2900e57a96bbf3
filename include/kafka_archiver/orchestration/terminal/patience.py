"""Say what a command waits for, before somebody takes it for dead."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds without an answer.
SECONDS = 3.0


@contextmanager
def announce_wait(lines: Callable[[], Iterator[str]]) -> Iterator[None]:
    """Print these lines to standard error if what is done here takes longer.

    :param lines: may ask for something themselves, as the ledger: each line is printed when it is known.
    """
    over = threading.Event()

    def speak() -> None:
        for line in lines():
            if over.is_set():
                return
            print(line, file=sys.stderr, flush=True)

    timer = threading.Timer(SECONDS, speak)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        over.set()
        timer.cancel()

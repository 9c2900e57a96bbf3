"""A command and the person who has called it: ask for consent, and say what the command waits for."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def has_terminal() -> bool:
    """Tell if there is a person at a terminal."""
    return sys.stdin.isatty()


def ask_consent(question: str) -> bool:
    """Ask the person at the terminal to agree. Without a terminal nothing is asked, and the result is True."""
    if not has_terminal():
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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

"""Ask for consent before a change that cannot be undone."""

import sys


def has_terminal() -> bool:
    """Tell if there is a person at a terminal."""
    return sys.stdin.isatty()


def ask_consent(question: str) -> bool:
    """Ask the person at the terminal to agree. Without a terminal nothing is asked, and the result is True."""
    if not has_terminal():
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")

"""Ask for consent before a change that cannot be undone."""

import sys


def can_ask() -> bool:
    """Whether there is a person at a terminal."""
    return sys.stdin.isatty()


def agreed(question: str) -> bool:
    """Whether the person at the terminal agrees. Without a terminal no question is asked, and the result is True."""
    if not can_ask():
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")

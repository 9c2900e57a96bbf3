"""What the person at the terminal sees: headings, lines, tables, and a line every few seconds while waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from scripts.stack.errors import StackError

Answer = TypeVar("Answer")
# What a wait returns: the answer, or None; and how things stand.
Look = tuple[Answer | None, str]
QUIET_SECONDS = 8.0


def say(text: str = "") -> None:
    print(f"  {text}" if text else "", flush=True)


class Clock:
    """The stages of the demo and the time they take."""

    def __init__(self, stages: int) -> None:
        self._stages, self._stage, self._begun = stages, 0, time.monotonic()
        self.begun_at = datetime.now(UTC)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        self._stage += 1
        begun = time.monotonic()
        print(f"\n━━ {self._stage}/{self._stages}  {title}", flush=True)
        yield
        print(f"   ({time.monotonic() - begun:.0f} s, {duration(self.seconds)} so far)", flush=True)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def until(look: Callable[[], Look[Answer]], seconds: float, every: float = 1.0) -> Answer:
    """The first answer that is not None. Says how things stand whenever that changes, and now and then.

    :raises StackError: there was none in time.
    """
    begun = said = time.monotonic()
    last = ""
    while True:
        answer, status = look()
        now = time.monotonic()
        if status and (status != last or now - said > QUIET_SECONDS):
            say(f"{now - begun:4.0f} s  {status}")
            last, said = status, now
        if answer is not None:
            return answer
        if now - begun > seconds:
            raise StackError(f"not within {seconds:.0f} s: {status}")
        time.sleep(every)


def table(columns: Sequence[str], rows: Sequence[Sequence[str | int]], total: Sequence[str | int] = ()) -> None:
    """Numbers to the right with thousands separated; `total` is a last row below a line."""
    every = [*rows, *([total] if total else [])]
    cells = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in every]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [all(isinstance(row[number], int) for row in every) for number in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        pairs = zip(row, widths, right, strict=True)
        return "  ".join(cell.rjust(width) if at_right else cell.ljust(width) for cell, width, at_right in pairs)

    say(line(columns).rstrip())
    rule = "  ".join("─" * width for width in widths)
    say(rule)
    for number, row in enumerate(cells):
        if total and number == len(rows):
            say(rule)
        say(line(row).rstrip())

"""What the person at the terminal sees: headings, lines, tables, commands, and a line now and then while waiting."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT

Answer = TypeVar("Answer")
# What a wait returns: the answer, or None; and how things stand.
Look = tuple[Answer | None, str]
QUIET_SECONDS = 8.0
WIDTH = 140


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


def table(columns: Sequence[str], rows: Sequence[Sequence[str | int]], total: Sequence[str | int]) -> None:
    """Numbers to the right with thousands separated; `total` is a last row below a line."""
    shown = Table(box=SIMPLE, show_footer=True)
    for name, last in zip(columns, total, strict=True):
        shown.add_column(name, _cell(last), no_wrap=True, justify="right" if isinstance(last, int) else "left")
    for row in rows:
        shown.add_row(*map(_cell, row))
    Console(width=WIDTH).print(shown)


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def run(command: str) -> None:
    """Show a command as typed, and its output, in a shell that has read .local/env.sh.

    :raises StackError: it did not end with 0.
    """
    say(f"$ {command}")
    shell = ["sh", "-c", f". .local/env.sh && exec {command}"]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    if code := subprocess.run(shell, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode:
        raise StackError(f"`{command}` ended with {code}")


def moment(milliseconds: int) -> str:
    """As one types a time: 2026-11-21T05:00:00Z."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

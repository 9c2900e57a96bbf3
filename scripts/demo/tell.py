"""Output for the terminal: stages, lines, commands, and status lines while waiting."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT

Answer = TypeVar("Answer")
BEGUN = time.monotonic()
QUIET_SECONDS = 8.0


def say(text: str = "") -> None:
    print(f"  {text}" if text else "", flush=True)


def so_far() -> str:
    minutes, seconds = divmod(round(time.monotonic() - BEGUN), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def stage(title: str) -> None:
    print(f"\n━━ {title} ({so_far()} so far)", flush=True)


def until(look: Callable[[], tuple[Answer | None, str]], seconds: float, every: float = 1.0) -> Answer:
    """The first answer that is not None. Prints the status when it changes, and every few seconds.

    :param look: gives the answer (or None) and the status.
    :raises StackError: there was no answer in time.
    """
    begun = last_said = time.monotonic()
    last = ""
    while True:
        answer, status = look()
        moment = time.monotonic()
        if status and (status != last or moment - last_said > QUIET_SECONDS):
            say(f"{moment - begun:4.0f} s  {status}")
            last, last_said = status, moment
        if answer is not None:
            return answer
        if moment - begun > seconds:
            raise StackError(f"not within {seconds:.0f} s: {status}")
        time.sleep(every)


def run(command: str) -> None:
    """Run a command in a shell with .local/env.sh, and show it with its output.

    :raises StackError: its exit code is not 0.
    """
    say(f"$ {command}")
    shell = ["sh", "-c", f". .local/env.sh && exec {command}"]
    environment = {**os.environ, "COLUMNS": "140"}
    if code := subprocess.run(shell, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode:
        raise StackError(f"`{command}` ended with {code}")


def moment(milliseconds: int) -> str:
    """A time as text: 2026-11-21T05:00:00Z."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

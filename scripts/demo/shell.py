"""Commands shown as typed, in a shell that has read .local/env.sh."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from queue import Empty, Queue
from typing import IO

from scripts.demo.tell import QUIET_SECONDS, say
from scripts.stack.errors import StackError
from scripts.stack.paths import ROOT

WIDTH = 140


def run(command: str, meanwhile: Callable[[], str] = str) -> None:
    """Show it and its output, and while that is silent how things stand.

    :raises StackError: it did not end with 0.
    """
    say(f"$ {command}")
    shell = subprocess.Popen(
        ["sh", "-c", f". .local/env.sh && exec {command}"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": str(WIDTH)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert shell.stdout is not None
    lines: Queue[str | None] = Queue()
    threading.Thread(target=_read, args=(shell.stdout, lines), daemon=True).start()
    begun, last = time.monotonic(), ""
    with shell:
        while True:
            try:
                line = lines.get(timeout=QUIET_SECONDS)
            except Empty:
                last = meanwhile() or last
                say(f"{time.monotonic() - begun:4.0f} s  {last or '…'}")
                continue
            if line is None:
                break
            say(line.rstrip())
    if shell.returncode:
        raise StackError(f"`{command}` ended with {shell.returncode}")


def _read(stream: IO[str], lines: Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def moment(milliseconds: int) -> str:
    """As one types a time: 2026-11-21T05:00:00Z."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

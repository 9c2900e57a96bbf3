"""Limits of time and memory for decoders and mappers: a process that exceeds one ends, and Spark's driver looks for the
record (`spark/fatal_records`).

Nothing is done per record: the limits are set for a slice of a batch at a time, and a slice is as large as the records
before it say that a few seconds of work are. The largest size of a value, `source.max_value_bytes`, is another limit:
`records/pipeline/refusals`.
"""

import faulthandler
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

Result = TypeVar("Result")
# The rows of the first slice, and the part of the limit that a slice should take: a mapper that waits for services
# gets as many records at a time as that allows.
FIRST, AIM = 1, 1 / 6
# Of slices without a limit of time.
AIM_SECONDS = 10.0
_STATM = Path("/proc/self/statm")


class RecordLimits:
    """The limits of one chunk's work on records. `seconds` and `memory_bytes`: for one slice; 0: no limit."""

    def __init__(self, seconds: float = 0, memory_bytes: int = 0) -> None:
        self._seconds, self._memory, self._rows = seconds, memory_bytes, FIRST

    def each(
        self, batch: pa.RecordBatch, work: Callable[[pa.RecordBatch], Result]
    ) -> list[tuple[pa.RecordBatch, Result]]:
        """Do some work on a batch, in slices. Returns each slice with its result; without limits, the whole batch."""
        if not (self._seconds or self._memory):
            return [(batch, work(batch))]
        done: list[tuple[pa.RecordBatch, Result]] = []
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, self._rows)
            began = time.monotonic()
            with watched(self._seconds, self._memory):
                done.append((piece, work(piece)))
            # A record that takes long makes the slices small, and many quick ones make them large again.
            per_row = max(time.monotonic() - began, 1e-6) / piece.num_rows
            aim = self._seconds * AIM if self._seconds else AIM_SECONDS
            self._rows = max(1, min(int(aim / per_row), 8 * self._rows))
            start += piece.num_rows
        return done


@contextmanager
def watched(seconds: float, memory_bytes: int) -> Iterator[None]:
    """End this process if what is within takes longer, and let what needs more memory fail.

    A thread of C ends the process: no lock of Python can keep it waiting.
    """
    before = _limit_memory(memory_bytes) if memory_bytes else None
    if seconds:
        faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        yield
    finally:
        if seconds:
            faulthandler.cancel_dump_traceback_later()
        if before:
            resource.setrlimit(resource.RLIMIT_DATA, before)


def _limit_memory(more: int) -> tuple[int, int] | None:
    """Limit the memory of this process to what it has and `more` bytes. Returns the limit before."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[5])
    except (OSError, ValueError, IndexError):
        return None
    limit = pages * resource.getpagesize() + more
    if before[0] != resource.RLIM_INFINITY:
        limit = min(limit, before[0])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    return before

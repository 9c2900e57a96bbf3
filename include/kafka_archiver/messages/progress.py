"""Lines about the progress of a job: the driver logs them, and the task takes the last one to the page. Pure."""

import re
import time
from collections.abc import Callable, Iterable, Iterator

# How such a line begins.
PROGRESS = "progress: "
# Seconds between two of them.
EVERY = 10.0
_LINE = re.compile(rf"(?:^|\s){PROGRESS}(?P<text>\S.*)$")


class ChunkProgress:
    """The progress of a job that writes chunks.

    :param chunks, offsets: those of the whole job.
    """

    def __init__(self, chunks: int, offsets: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._chunks, self._offsets, self._clock = chunks, offsets, clock
        self._begun = self._last = clock()
        self._written = self._done = 0

    def add(self, offsets: int) -> str | None:
        """Count one more chunk. Return the line about all, if it is time for one."""
        self._written, self._done = self._written + 1, self._done + offsets
        moment = self._clock()
        if moment - self._last < EVERY:
            return None
        self._last = moment
        rate = self._done / max(moment - self._begun, 1e-6)
        left = f", {remaining(int((self._offsets - self._done) / rate))} left" if rate else ""
        share = f" ({100 * self._done // self._offsets} %)" if self._offsets else ""
        return f"{PROGRESS}{self._written:,} of {self._chunks:,} chunks{share}, {rate:,.0f} offsets/s{left}"


def remaining(seconds: int) -> str:
    """Return a duration in words."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def find_progress(lines: Iterable[str], on_progress: Callable[[str], None]) -> Iterator[str]:
    """Pass the lines of a job's output through, and report the text of those about its progress."""
    for line in lines:
        if match := _LINE.search(line.rstrip()):
            on_progress(match["text"])
        yield line

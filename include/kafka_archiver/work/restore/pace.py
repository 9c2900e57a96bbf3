"""The speed of one writer: its share of the limits of the whole restore."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_archiver.model.restore import RestoreLimits

# The most that is sent at once without limits.
ROWS, BYTES = 5000, 2 << 20


@dataclass
class Pace:
    """Waits so that no more than so many bytes and records a second are sent, on average since the start.

    None: no limit.
    """

    bytes_per_second: float | None = None
    records_per_second: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _due: float = field(default=0.0, init=False)

    @classmethod
    def share(cls, limits: RestoreLimits, writers: int) -> "Pace":
        """Return the pace of each of so many writers that work at the same time."""

        def part(limit: int | None) -> float | None:
            return None if limit is None else limit / writers

        return cls(part(limits.bytes_per_second), part(limits.records_per_second))

    @property
    def is_limited(self) -> bool:
        return self.bytes_per_second is not None or self.records_per_second is not None

    @property
    def most_rows(self) -> int:
        """The most records to send at once: those of a second, so that a transaction ends in time."""
        return ROWS if self.records_per_second is None else max(1, min(ROWS, int(self.records_per_second)))

    @property
    def most_bytes(self) -> int:
        """The most bytes to send at once."""
        return BYTES if self.bytes_per_second is None else max(1, min(BYTES, int(self.bytes_per_second)))

    def before(self, records: int, size: int) -> None:
        """Wait until so many records and bytes may be sent."""
        cost = max(
            0.0 if self.bytes_per_second is None else size / self.bytes_per_second,
            0.0 if self.records_per_second is None else records / self.records_per_second,
        )
        if not cost:
            return
        moment = self.clock()
        if self._due > moment:
            self.sleep(self._due - moment)
        # Time in which nothing was sent is not saved up.
        self._due = max(self._due, moment) + cost

    @property
    def wait(self) -> float:
        """The seconds until more may be sent."""
        return max(0.0, self._due - self.clock()) if self._due else 0.0

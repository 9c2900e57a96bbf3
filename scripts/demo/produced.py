"""What was produced, and what must have become of it. Pure: known from the producer's delivery reports alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from scripts.demo.orders import Event

Fate = Literal["kept", "compacted", "aborted"]


@dataclass(frozen=True, slots=True)
class Sent:
    """One delivered record. `transaction`: its number and whether it was committed; None without one."""

    event: Event
    partition: int
    offset: int
    transaction: tuple[int, bool] | None = None


@dataclass(slots=True)
class Produced:
    """All delivered records."""

    sent: list[Sent] = field(default_factory=list)

    def fates(self) -> dict[int, dict[int, Fate]]:
        """What must become of each record, by partition and offset.

        Compaction removes a record when a later one of its key is there. (It never looks at the newest segment, so
        the stream has no key twice in its last hours.)
        """
        fates: dict[int, dict[int, Fate]] = {}
        seen: set[str] = set()
        for record in sorted(self.sent, key=lambda s: s.offset, reverse=True):
            fate: Fate = "compacted" if record.event.key in seen else "kept"
            if record.transaction and not record.transaction[1]:
                fate = "aborted"
            else:
                # A key is always in the same partition.
                seen.add(record.event.key)
            fates.setdefault(record.partition, {})[record.offset] = fate
        return fates

    def expected(self) -> dict[str, int]:
        """The time of each event that must be in the archive, by id."""
        fates = self.fates()
        return {s.event.id: s.event.timestamp for s in self.sent if fates[s.partition][s.offset] == "kept"}

    def markers(self) -> dict[int, int]:
        """How many control records Kafka wrote to each partition: one for each transaction that touched it."""
        touched = {(s.partition, s.transaction[0]) for s in self.sent if s.transaction}
        return {p: sum(partition == p for partition, _ in touched) for p in {s.partition for s in self.sent}}


def spans(offsets: Iterable[int]) -> tuple[int, int]:
    """From the first to behind the last; (0, 0) when there are none."""
    found = sorted(offsets)
    return (found[0], found[-1] + 1) if found else (0, 0)

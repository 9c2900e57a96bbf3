"""The stream: order events of several hours, from shops, phones and a partner's import. Pure.

The same start gives the same events.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple

HOUR = 3_600_000
# Events in each hour, about 200,000 with the import.
PER_HOUR = (27_000, 30_000, 33_000, 35_000, 37_000, 36_000)
# In this hour a partner's import fails in the middle (an aborted transaction) and is repeated completely.
IMPORT_HOUR, IMPORTED = 4, 1_200
# A phone without network delivers its orders one or two hours late.
LATE_SHARE = 0.015
# Some arrive after younger ones: networks, queues and retries delay them by seconds or minutes.
DELAYED_SHARE, DELAY = 0.1, 40_000
COUNTRIES = ("DE", "FR", "IT", "ES", "NL", "PL", "AT", "SE")


class Event(NamedTuple):
    """One record. `timestamp`: the time of the event in milliseconds since 1970, not of its arrival."""

    id: str
    key: str
    timestamp: int
    value: bytes
    headers: list[tuple[str, bytes]]


class Batch(NamedTuple):
    """Records that are sent together: without a transaction, or in one that is committed or aborted."""

    events: list[Event]
    transaction: Literal["none", "committed", "aborted"] = "none"


class Stream:
    """:param start: the first millisecond of the first hour. :param scale: 1 for the whole stream."""

    def __init__(self, start: int, scale: float = 1.0) -> None:
        self._start, self._scale = start, scale
        self._random = random.Random(3)
        self._count = 0

    def batches(self) -> Iterator[Batch]:
        """All records in the order of their arrival."""
        for hour, count in enumerate(PER_HOUR):
            begin = self._start + hour * HOUR
            arrivals = sorted(begin + self._random.randrange(HOUR) for _ in range(self._scaled(count)))
            events = [self._event(self._happened(hour, arrival)) for arrival in arrivals]
            if hour == IMPORT_HOUR:
                half = len(events) // 2
                imported = [
                    self._event(begin + HOUR // 2 + number, "partner-import")
                    for number in range(self._scaled(IMPORTED))
                ]
                yield Batch(events[:half])
                # The first attempt fails after two thirds; the second one sends all events again.
                yield Batch(imported[: len(imported) * 2 // 3], "aborted")
                yield Batch(imported, "committed")
                events = events[half:]
            yield Batch(events)

    def _scaled(self, count: int) -> int:
        return max(10, round(count * self._scale))

    def _happened(self, hour: int, arrival: int) -> int:
        delay = int(self._random.expovariate(1 / DELAY)) if self._random.random() < DELAYED_SHARE else 0
        happened = max(self._start + hour * HOUR, arrival - delay)
        # No late events for the first hour: the archive begins after it, and a backfill archives it later at once.
        if hour < 2 or self._random.random() >= LATE_SHARE:
            return happened
        return happened - self._random.randint(1, min(2, hour - 1)) * HOUR

    def _event(self, happened: int, source: str = "") -> Event:
        pick = self._random
        self._count += 1
        value = {
            "event_id": f"e{self._count:07}",
            "order_id": f"order-{self._count:07}",
            "created_at": datetime.fromtimestamp(happened / 1000, UTC).isoformat(timespec="milliseconds"),
            "source": source or pick.choice(("web", "app", "app", "shop")),
            "country": pick.choices(COUNTRIES, (30, 20, 15, 12, 8, 7, 5, 3))[0],
            "customer": f"c{pick.randrange(40_000):05}",
            "items": [
                {"sku": f"sku-{pick.randrange(5_000):04}", "quantity": pick.randint(1, 4)}
                for _ in range(pick.choice((1, 1, 1, 2, 3)))
            ],
            "amount": round(pick.lognormvariate(3.6, 0.7), 2),
            "currency": "EUR",
        }
        text = json.dumps(value, separators=(",", ":")).encode()
        trace = f"{pick.getrandbits(64):016x}".encode()
        return Event(str(value["event_id"]), str(value["order_id"]), happened, text, [("trace", trace)])


def expected(batches: Iterable[Batch]) -> dict[str, int]:
    """The timestamp of each event that must be in the archive, by id."""
    return {event.id: event.timestamp for b in batches if b.transaction != "aborted" for event in b.events}


def faults(expected: Mapping[str, int], records: Iterable[tuple[str, int, int]]) -> list[str]:
    """The faults of an archive's lines, one phrase each; empty if there is none.

    :param expected: the timestamp of each event by id.
    :param records: id, timestamp and the start of the archived hour (ms) of each line.
    """
    lines = list(records)
    times = Counter(id_ for id_, _, _ in lines)
    kinds = {
        "missing": sorted(expected.keys() - times.keys()),
        "there more than once": sorted(id_ for id_, count in times.items() if count > 1),
        "there that should not be": sorted(times.keys() - expected.keys()),
        "in the wrong hour": [id_ for id_, at, hour in lines if not hour <= expected.get(id_, at) < hour + HOUR],
        "with another time than produced": [id_ for id_, at, _ in lines if at != expected.get(id_, at)],
    }
    return [f"{len(ids):,} records {what} (first: {ids[0]})" for what, ids in kinds.items() if ids]

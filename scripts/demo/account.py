"""The account: what became of every offset of the log. The archive's own numbers, explained by what was produced."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.demo.produced import Fate

COLUMNS = ("partition", "offsets", "archived", "compacted", "aborted", "control", "lost", "unexplained")


@dataclass(frozen=True, slots=True)
class Account:
    """Of one partition. `offsets` is the log's own count; the others add up to it when all is accounted for."""

    partition: int
    offsets: int
    archived: int
    compacted: int
    aborted: int
    control: int
    lost: int

    @property
    def unexplained(self) -> int:
        return self.offsets - (self.archived + self.compacted + self.aborted + self.control + self.lost)

    @property
    def row(self) -> tuple[int, ...]:
        return tuple(int(getattr(self, column)) for column in COLUMNS)


def account(
    partition: int, log: tuple[int, int], chunks: Iterable[Mapping[str, Any]], fates: Mapping[int, Fate]
) -> Account:
    """:param log: the first offset and the one behind the last.
    :param chunks: the `chunks` of the runs' manifests for this partition, as JSON.
    :param fates: what must have become of the produced records; an offset that nobody produced is a control record.
    """
    counts: Counter[str] = Counter()
    for chunk in chunks:
        counts["archived"] += chunk["archived"]
        counts["lost"] += chunk["lost"]
        # "kept" here is a record that the archive says is absent and that should be there: explained by nothing.
        counts.update(fates.get(offset, "control") for offset in _absent(chunk))
    return Account(
        partition=partition,
        offsets=log[1] - log[0],
        archived=counts["archived"],
        compacted=counts["compacted"],
        aborted=counts["aborted"],
        control=counts["control"],
        lost=counts["lost"],
    )


def _absent(chunk: Mapping[str, Any]) -> Iterator[int]:
    """The offsets at which Kafka has no record: few are said as ranges, many as a bit for each offset."""
    said = chunk["absent_ranges"]
    if isinstance(said, list):
        for start, end in said:
            yield from range(start, end)
        return
    bits = base64.b64decode(said["bitmap"])
    for number in range(chunk["end"] - chunk["start"]):
        if bits[number // 8] >> (7 - number % 8) & 1:
            yield chunk["start"] + number


def faults(
    accounts: Iterable[Account], fates: Mapping[int, Mapping[int, Fate]], markers: Mapping[int, int]
) -> list[str]:
    """What is wrong with the accounts, a phrase each."""
    found = []
    for one in accounts:
        must = Counter(fates[one.partition].values())
        wanted = {
            "archived": must["kept"],
            "compacted": must["compacted"],
            "aborted": must["aborted"],
            "control": markers[one.partition],
            "lost": 0,
            "unexplained": 0,
        }
        for name, count in wanted.items():
            if (got := getattr(one, name)) != count:
                found.append(f"partition {one.partition}: {got:,} offsets {name}, expected {count:,}")
    return found

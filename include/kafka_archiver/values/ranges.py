"""Offset ranges: half-open, as in Kafka's own commits. Pure arithmetic."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self, TypeVar

Name = TypeVar("Name")


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Range(NamedTuple):
    """The offsets from `start` up to, not including, `end`."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """The number of its offsets; 0 when empty."""
        return max(0, self.end - self.start)

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and self.start <= offset < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    def split(self, length: int) -> Iterator[Self]:
        """Consecutive slices of `length` offsets, the last one shorter; they tile the range."""
        for start in range(self.start, self.end, length):
            yield type(self)(start, min(start + length, self.end))


def merge(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same offsets as the fewest ranges, sorted, with touching and overlapping ones joined."""
    merged: list[Range] = []
    for item in sorted(r for r in ranges if r.size):
        if merged and item.start <= merged[-1].end:
            merged[-1] = Range(merged[-1].start, max(merged[-1].end, item.end))
        else:
            merged.append(item)
    return tuple(merged)


def subtract(whole: Range, covered: Iterable[Range]) -> tuple[Range, ...]:
    """The offsets of `whole` that are in none of `covered`, as sorted disjoint ranges."""
    left: list[Range] = []
    position = whole.start
    for item in merge(covered):
        if item.start > position:
            left.append(Range(position, min(item.start, whole.end)))
        position = max(position, item.end)
        if position >= whole.end:
            break
    if position < whole.end:
        left.append(Range(position, whole.end))
    return tuple(r for r in left if r.size)


def overlaps(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The offsets that are in more than one of the ranges."""
    shared: list[Range] = []
    reached: int | None = None
    for item in sorted(r for r in ranges if r.size):
        if reached is not None and item.start < reached:
            shared.append(Range(item.start, min(item.end, reached)))
        reached = item.end if reached is None else max(reached, item.end)
    return merge(shared)


def share(sizes: Mapping[Name, int], limit: int) -> dict[Name, int]:
    """Share `limit`: each name gets at most what it wants, and small wishes are granted first, in full.

    The large ones share the rest in equal parts (a remainder goes to the first ones), so one skewed partition cannot
    starve the others.
    """
    granted: dict[Name, int] = {}
    left = limit
    waiting = sorted(sizes, key=lambda name: sizes[name])
    while waiting:
        fair = -(-left // len(waiting))
        name = waiting.pop(0)
        granted[name] = min(sizes[name], fair, left)
        left -= granted[name]
    return {name: granted[name] for name in sizes}

"""Stretches: closed hours without a record, many in one value. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from kafka_archiver.values.documents import UtcTime, Value, unwritten
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import Range, subtract

# With the second rules, a run that judges more hours than this at once leaves those without a record to the progress.
LONG = 48

Verdict = Literal["complete", "incomplete"]


class Stretch(Value):
    """The verdict on the hours of `[start, until)` that have no proof of their own: they have no record.

    `number`, `run`: the last run that changed it. The other fields are those of a proof.
    """

    start: UtcTime
    until: UtcTime
    number: int
    run: str
    status: Verdict
    reason: str | None = unwritten(None)
    complete_as_of: UtcTime | None = unwritten(None)
    assumes: str | None = unwritten(None)

    @property
    def hours(self) -> range:
        """The hours, in whole hours since 1970."""
        return range(to_hour(self.start), to_hour(self.until))

    def over(self, hours: range) -> "Stretch":
        """Return the same verdict on other hours."""
        return self.model_copy(update={"start": hour_start(hours.start), "until": hour_start(hours.stop)})


class Ruling(NamedTuple):
    """The changes that one run makes to stretches.

    :ivar bulk: the hours that it judges, in ranges of more than LONG.
    :ivar earlier: incomplete hours before this one are judged again.
    :ivar edges: hours at which the verdict may change.
    :ivar verdict: the verdict on an hour, as a stretch of any hours; None while the hour is open.
    """

    bulk: Sequence[range]
    earlier: int
    edges: frozenset[int]
    verdict: Callable[[int], Stretch | None]


def stretch_of(stretches: Sequence[Stretch], hour: int | None) -> Stretch | None:
    """Return the stretch that covers an hour, if any.

    :param stretches: in order, without overlaps.
    """
    if hour is None or not stretches:
        return None
    at = bisect_right(stretches, hour, key=lambda stretch: stretch.hours.start) - 1
    return stretches[at] if at >= 0 and hour in stretches[at].hours else None


def stretches_after(known: Sequence[Stretch], ruling: Ruling) -> tuple[Stretch, ...]:
    """Return the stretches after one more run, in order. Complete hours stay complete."""
    edges = ruling.edges | {ruling.earlier, *(edge for span in ruling.bulk for edge in (span.start, span.stop))}
    kept = [piece for stretch in known for piece in _judged_again(stretch, ruling, edges)]
    covered = [Range(stretch.hours.start, stretch.hours.stop) for stretch in known]
    added: list[Stretch] = []
    for span in ruling.bulk:
        for free in subtract(Range(span.start, span.stop), covered):
            added += _judged(range(*free), ruling, edges)
            covered.append(free)
    return tuple(_joined(sorted([*kept, *added], key=lambda stretch: stretch.start)))


def _judged_again(stretch: Stretch, ruling: Ruling, edges: Iterable[int]) -> Iterator[Stretch]:
    if stretch.status == "complete":
        yield stretch
        return
    for piece in _cut(stretch.hours, edges):
        verdict = None
        if piece.start < ruling.earlier or any(piece.start in span for span in ruling.bulk):
            verdict = ruling.verdict(piece.start)
        changed = verdict is not None and (verdict.status, verdict.reason) != (stretch.status, stretch.reason)
        yield (verdict if verdict and changed else stretch).over(piece)


def _judged(hours: range, ruling: Ruling, edges: Iterable[int]) -> Iterator[Stretch]:
    for piece in _cut(hours, edges):
        if verdict := ruling.verdict(piece.start):
            yield verdict.over(piece)


def _cut(hours: range, edges: Iterable[int]) -> Iterator[range]:
    inside = sorted(edge for edge in set(edges) if hours.start < edge < hours.stop)
    yield from (range(*piece) for piece in pairwise([hours.start, *inside, hours.stop]))


def _joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Join neighbours with the same verdict of the same run."""
    last: Stretch | None = None
    for stretch in stretches:
        if last and last.until == stretch.start and last.over(stretch.hours) == stretch:
            last = last.over(range(last.hours.start, stretch.hours.stop))
            continue
        if last:
            yield last
        last = stretch
    if last:
        yield last

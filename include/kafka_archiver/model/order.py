"""The order of a log's timestamps, as far as backfills with `timestamp.max_disorder` have read the log. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from kafka_archiver.model.manifest import Manifest
from kafka_archiver.values.documents import Value
from kafka_archiver.values.ranges import Range, TopicPartition, subtract


class Span(NamedTuple):
    """Offsets that were read, and the earliest and latest time of their records; null if there were no records."""

    start: int
    end: int
    earliest: int | None
    latest: int | None

    @property
    def range(self) -> Range:
        return Range(self.start, self.end)


class Order(Value):
    """The known order of one log. `disorder`: the most milliseconds by which a record is older than an earlier one."""

    disorder: int = 0
    spans: tuple[Span, ...] = ()

    def has(self, whole: Range) -> bool:
        """Return True if all of these offsets were read."""
        return not subtract(whole, (s.range for s in self.spans))

    def after(self, name: TopicPartition, manifest: Manifest) -> Self:
        """The order after one more run has read the log."""
        accounts = [a for a in manifest.chunks if a.name == name]
        # Skip what a rebuild has only read again.
        new = [span for span in _spans(name, manifest) if not self.has(span.range)]
        spans = sorted((*self.spans, *new))
        disorder = max([self.disorder, *(a.disorder for a in accounts), *_between(spans)])
        return self.model_copy(update={"disorder": disorder, "spans": tuple(_joined(spans))})


def _spans(name: TopicPartition, manifest: Manifest) -> Iterator[Span]:
    times: dict[int, list[int]] = {}
    for entry in manifest.stored:
        if (entry.topic, entry.partition) == name:
            times.setdefault(entry.chunk_start, []).extend((entry.min_timestamp, entry.max_timestamp))
    for account in manifest.chunks:
        if account.name == name:
            # The last record may be a filtered one, whose time no object has.
            times_of_chunk = [*times.get(account.start, []), *([account.last.timestamp] if account.last else [])]
            yield Span(account.start, account.end, min(times_of_chunk, default=None), max(times_of_chunk, default=None))


def _between(spans: Iterable[Span]) -> Iterator[int]:
    """By how much each span's earliest record is older than the latest record before it."""
    latest = -1
    for span in spans:
        if span.earliest is not None and span.latest is not None:
            if latest >= 0:
                yield latest - span.earliest
            latest = max(latest, span.latest)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The spans, with touching ones joined: the order between them is known."""
    joined: list[Span] = []
    for span in spans:
        if not joined or joined[-1].end < span.start:
            joined.append(span)
            continue
        before = joined.pop()
        earliest = [t for t in (before.earliest, span.earliest) if t is not None]
        latest = [t for t in (before.latest, span.latest) if t is not None]
        end = max(before.end, span.end)
        joined.append(Span(before.start, end, min(earliest, default=None), max(latest, default=None)))
    return joined

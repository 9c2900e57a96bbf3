"""Read the coverage of some days: one listing a month, and the beginnings of the proofs that have changed."""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from threading import Lock

from pydantic_core import from_json

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.errors import DocumentError
from kafka_archiver.model.layouts.registry import hours_by_key
from kafka_archiver.model.object_keys import hour_document, split_hour_document, topic_prefix
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.stretches import stretch_of
from kafka_archiver.state.coverage.cells import Coverage, ProofHead, cells
from kafka_archiver.state.coverage.damage import read_damage
from kafka_archiver.store import Store
from kafka_archiver.values.intervals import hour_of, to_hour, to_ms

THREADS = 16
# Bytes of a proof up to the list of its runs.
HEAD = 4096
# Objects of dead letters that are looked at.
LETTERS = 2000


class ProofHeads:
    """The beginnings of proofs, by key and ETag: a proof that has not changed is not read again. For all archives."""

    def __init__(self, most: int = 50_000) -> None:
        self._most, self._lock = most, Lock()
        self._kept: OrderedDict[tuple[str, str, str], ProofHead] = OrderedDict()

    def read(self, store: Store, key: str, etag: str) -> ProofHead | None:
        """Return the beginning of a proof; None if it is gone.

        :raises DocumentError: it is damaged.
        """
        cache_key = (store.url, key, etag)
        with self._lock:
            if kept := self._kept.get(cache_key):
                self._kept.move_to_end(cache_key)
                return kept
        data = store.read(key, 0, HEAD)
        if data is None:
            return None
        try:
            head = ProofHead.model_validate(from_json(data, allow_partial=True))
        except ValueError as error:
            raise DocumentError(f"{store.url}/{key} is not a readable proof: {error}") from error
        with self._lock:
            self._kept[cache_key] = head
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return head


def read_coverage(context: Context, last: date, days: int, heads: ProofHeads, at_work: bool = True) -> Coverage:
    """Read the hours of the days up to `last`, UTC. Asks only the store.

    :param at_work: a DAG run is at work, so that unfinished runs are being finished.
    :raises ArchiverError: the store does not answer, or a document is damaged.
    """
    first = to_hour(datetime.combine(last, time(), UTC) - timedelta(days=days - 1))
    hours = range(first, first + 24 * days)
    line = read_line(context)
    known_heads = _heads_of_stretches(line.settled, hours) | _heads(context, hours, heads)
    topics = sorted({partition.topic for partition in line.settled.partitions})
    letters, cut = _letters(context, topics)
    spans = [_hours_of(plan.interval.start, plan.interval.end) for plan in line.unfinished]
    damaged_hours = read_damage(context)
    damaged = {hour: len(findings) for hour, findings in damaged_hours.hours.items()}
    shown = cells(hours, known_heads, letters, spans, line.settled.unsure_until, damaged, at_work)
    return Coverage(archive=context.archive.archive, hours=tuple(shown), cut=cut, damage_cut=damaged_hours.cut)


def _hours_of(start: datetime, end: datetime) -> range:
    first, last = hour_of(to_ms(start)), hour_of(to_ms(end) - 1)
    return range(first or 0, (last or 0) + 1)


def _heads(context: Context, hours: range, heads: ProofHeads) -> dict[int, ProofHead]:
    archive, store = context.archive.archive, context.store
    listed = [
        (document[0], stat)
        for prefix in dict.fromkeys(hour_document(archive, hour)[: -len("DD/HH.json")] for hour in hours)
        for stat in store.list(prefix)
        if (document := split_hour_document(archive, stat.key)) and document[1] is None and document[0] is not None
    ]
    shown = [(hour, stat) for hour, stat in listed if hour in hours]
    with ThreadPoolExecutor(THREADS) as pool:
        read = pool.map(lambda hour_and_stat: heads.read(store, hour_and_stat[1].key, hour_and_stat[1].etag), shown)
        return {hour: head for (hour, _), head in zip(shown, read, strict=True) if head}


def _heads_of_stretches(progress: Progress, hours: range) -> dict[int, ProofHead]:
    covered = {hour: stretch_of(progress.stretches, hour) for hour in hours if progress.stretches}
    return {
        hour: ProofHead(status=stretch.status, reason=stretch.reason, complete_as_of=stretch.complete_as_of)
        for hour, stretch in covered.items()
        if stretch
    }


def _letters(context: Context, topics: Iterable[str]) -> tuple[Counter[int], bool]:
    """Count the objects of dead letters by hour, and tell whether there are more than were looked at."""
    keys = list(islice(_keys_of_letters(context.store, topics), LETTERS + 1))
    counted: Counter[int] = Counter()
    for key in keys[:LETTERS]:
        # None for records without a usable time.
        counted.update(hours_by_key(context.archive.settings, key))
    return counted, len(keys) > LETTERS


def _keys_of_letters(store: Store, topics: Iterable[str]) -> Iterator[str]:
    for topic in topics:
        for stat in store.list(topic_prefix(topic, dead_letter=True)):
            yield stat.key

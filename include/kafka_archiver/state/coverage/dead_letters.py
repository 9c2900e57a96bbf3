"""The dead letters of an hour: their reasons, and the runs that count for them, which may have no other record of it.

A proof does not name these runs, and neither does a letter's key. So they are looked for in the line, by the time when
the letters were written: some twenty requests, however long the line is.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.layouts.hourly import dead_letter_prefix
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.object_keys import SEALED, split_object_key
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.formats.dead_letter import reasons
from kafka_archiver.store import Stat, Store
from kafka_archiver.values.documents import Value
from kafka_archiver.values.ranges import TopicPartition

# Objects of letters that are read for their reasons. An encrypted object is not read.
READ_OBJECTS = 5
# Bytes that are read of an object, and bytes that these become.
_READ_BYTES, _TEXT_BYTES = 1 << 18, 1 << 22
# Reasons that are named, and characters of one that are shown.
_SHOWN_REASONS, _SHOWN_CHARACTERS = 10, 300
_NUMBER = re.compile(r"\d+")
# Objects of letters whose runs are looked for.
_SOUGHT_OBJECTS = 100
# Topics that are listed at the same time.
_THREADS = 8
# Plans that are read for one object, the last ones that it may be of: later runs may be planned before one is finished.
SOUGHT_PLANS = 24


class Reason(Value):
    """A reason, and how many of the letters that were read have it. `text`: that of the first; numbers may differ."""

    text: str
    letters: int


def reasons_of(store: Store, letters: Sequence[ObjectEntry]) -> tuple[Reason, ...]:
    """Read the reasons of the first letters, the most frequent first. At most READ_OBJECTS requests."""
    plain = [entry.key for entry in letters if not entry.key.endswith(SEALED) and entry.sidecar_of is None]
    counted: Counter[str] = Counter()
    first_texts: dict[str, str] = {}
    with ThreadPoolExecutor(READ_OBJECTS) as pool:
        for object_reasons in pool.map(lambda key: _reasons(store, key), plain[:READ_OBJECTS]):
            for reason in object_reasons:
                kind = _NUMBER.sub("#", reason)
                counted[kind] += 1
                first_texts.setdefault(kind, reason)
    return tuple(
        Reason(text=first_texts[kind][:_SHOWN_CHARACTERS], letters=count)
        for kind, count in counted.most_common(_SHOWN_REASONS)
    )


def _reasons(store: Store, key: str) -> list[str]:
    head = store.read(key, 0, _READ_BYTES)
    try:
        return list(reasons(head, _TEXT_BYTES)) if head else []
    except IntegrityError:
        # The audit says what is wrong with it.
        return []


def dead_letter_objects(context: Context, hour: int) -> dict[str, Stat]:
    """List the objects of dead letters that the store has of an hour, by key. One listing for each topic."""
    progress = context.ledger.progress()
    topics = sorted({partition.topic for partition in progress.partitions}) if progress else ()
    prefixes = [dead_letter_prefix(topic, hour) for topic in topics]
    with ThreadPoolExecutor(_THREADS) as pool:
        return {stat.key: stat for stats in pool.map(lambda p: list(context.store.list(p)), prefixes) for stat in stats}


def dead_letter_runs(context: Context, letters: Iterable[Stat]) -> tuple[set[str], int]:
    """Return the final runs that count for these objects, and of how many objects the line does not show the run."""
    ledger, last, stats = context.ledger, read_line(context).last, list(letters)
    planned = cache(ledger.planned)
    intervals = [_interval(planned, last, stat) for stat in stats[:_SOUGHT_OBJECTS]]
    unknown = intervals.count(None) + len(stats[_SOUGHT_OBJECTS:])
    return {run for interval in set(intervals) if interval and (run := ledger.last_committed(interval))}, unknown


def _interval(planned: Callable[[int], Plan | None], last: int, stat: Stat) -> str | None:
    """Return the interval of the run with an object's chunk."""
    if (object_name := split_object_key(stat.key)) is None:
        return None

    def since(number: int) -> datetime:
        return plan.planned_at if (plan := planned(number)) else datetime.max.replace(tzinfo=UTC)

    # A listing gives whole seconds.
    before = bisect_right(range(1, last + 1), stat.modified + timedelta(seconds=1), key=since)
    for number in range(before, max(before - SOUGHT_PLANS, 0), -1):
        plan = planned(number)
        chunk = (
            plan.chunk_of(TopicPartition(object_name.topic, object_name.partition), object_name.start) if plan else None
        )
        if plan and chunk and (chunk.start, chunk.generation) == (object_name.start, object_name.generation):
            return plan.interval.id
    return None

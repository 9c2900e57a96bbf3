"""The runs that count for the dead letters of an hour: such a run may have no other record of it.

A proof does not name these runs, and neither does a letter's key. So they are looked for in the line, by the time when
the letters were written: some twenty requests, however long the line is.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import read_line
from kafka_archiver.model.keys import split_object_key, topic_prefix
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.plan import Plan
from kafka_archiver.store import Stat
from kafka_archiver.values.ranges import TopicPartition

# Objects of letters whose runs are looked for; topics that are listed at the same time; plans that are read for one
# object, the last ones that it may be of: a run may be finished after later runs are planned.
LETTERS, THREADS, PLANS = 100, 8, 24


def dead_letter_objects(context: Context, hour: int) -> dict[str, Stat]:
    """List the objects of dead letters that the store has of an hour, by key. One listing for each topic."""
    progress = context.ledger.progress()
    topics = sorted({partition.topic for partition in progress.partitions}) if progress else ()
    prefixes = [f"{topic_prefix(topic, dead_letter=True)}{hour_path(hour)}/" for topic in topics]
    with ThreadPoolExecutor(THREADS) as pool:
        return {stat.key: stat for stats in pool.map(lambda p: list(context.store.list(p)), prefixes) for stat in stats}


def dead_letter_runs(context: Context, letters: Iterable[Stat]) -> tuple[set[str], int]:
    """Return the final runs that count for these objects, and of how many objects the line does not show the run."""
    ledger, last, stats = context.ledger, read_line(context).last, list(letters)
    planned = cache(ledger.planned)
    intervals = [_interval(planned, last, stat) for stat in stats[:LETTERS]]
    unknown = intervals.count(None) + len(stats[LETTERS:])
    return {run for interval in set(intervals) if interval and (run := ledger.last_committed(interval))}, unknown


def _interval(planned: Callable[[int], Plan | None], last: int, stat: Stat) -> str | None:
    """Return the interval of the run with an object's chunk."""
    if (object_name := split_object_key(stat.key)) is None:
        return None

    def since(number: int) -> datetime:
        return plan.planned_at if (plan := planned(number)) else datetime.max.replace(tzinfo=UTC)

    # A listing gives whole seconds.
    before = bisect_right(range(1, last + 1), stat.modified + timedelta(seconds=1), key=since)
    for number in range(before, max(before - PLANS, 0), -1):
        plan = planned(number)
        chunk = (
            plan.chunk_of(TopicPartition(object_name.topic, object_name.partition), object_name.start) if plan else None
        )
        if plan and chunk and (chunk.start, chunk.generation) == (object_name.start, object_name.generation):
            return plan.interval.id
    return None

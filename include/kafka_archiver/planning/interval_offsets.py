"""The offsets that a backfill looks at for its interval: by Kafka's time index, and behind wrong clocks."""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.planning.beginnings import taken_ranges
from kafka_archiver.planning.partition_state import Known, PartitionState
from kafka_archiver.planning.time_boundary import TimeBoundary
from kafka_archiver.planning.time_index import find_hidden_logs
from kafka_archiver.values.intervals import Interval, to_ms
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

log = logging.getLogger(__name__)
# Offsets behind an interval that show whether the assumed order of times holds.
GUARD = 1000


class IntervalOffsets(NamedTuple):
    """The offsets that may be of an interval. `unordered`: logs whose times contradict what the archive assumes."""

    ranges: dict[TopicPartition, Range]
    unordered: tuple[TopicPartition, ...] = ()


def interval_offsets(
    cluster: Cluster,
    states: Sequence[PartitionState],
    known: Known,
    interval: Interval,
    isolation: str,
    disorder: timedelta | None,
) -> IntervalOffsets:
    """Return the offsets that most records of an interval have. They are no proof of anything.

    The time index gives them; where a record with a wrong clock hides others from it, the times of these.

    :param known: what plans have already: nothing more is looked for where they have all.
    :param disorder: what the archive assumes about the order of times. Then the range is that much wider on both sides,
        with some records behind it, which show whether only one record with a wrong clock ended the range.
    :raises TransientError: a log gave no answer in time.
    """
    names = [state.name for state in states]
    wider = disorder or timedelta(0)
    begin_ms, end_ms = to_ms(interval.start - wider), to_ms(interval.end + wider)
    first = cluster.offsets_at(names, begin_ms, isolation)
    last = cluster.offsets_at(names, end_ms, isolation)
    unseen = find_hidden_logs(cluster, first, begin_ms)
    tolerated = wider // timedelta(milliseconds=1)
    begins: dict[TopicPartition, TimeBoundary] = {}
    ends: dict[TopicPartition, TimeBoundary] = {}
    for name, limit in _search_limits(states, known, first, unseen).items():
        if name not in unseen and (begin := first[name]) is not None:
            begins[name] = TimeBoundary(begin_ms, begin, limit, tolerated)
        if (end := last[name]) is not None:
            ends[name] = TimeBoundary(end_ms, end, limit, tolerated)
    _search_boundaries(cluster, begins, ends)
    guard = GUARD if disorder else 0
    ranges = {}
    for state in states:
        name, begin, end = state.name, first[state.name], last[state.name]
        if name in ends:
            end = max(ends[name].range.end, end or 0)
        if name in begins:
            begin = begins[name].range.start
        stop = state.log_end if end is None else min(end + guard, state.log_end)
        start = state.log_start if name in unseen else stop if begin is None else max(begin, state.log_start)
        ranges[name] = Range(min(start, stop), stop)
    moved = sorted({name for of in (begins, ends) for name, boundary in of.items() if boundary.is_moved})
    if moved:
        log.info(
            "in %s and %d more partitions, earlier records follow the first one of the interval or of a later time: "
            "the times of single records decide what is taken of these",
            moved[0],
            len(moved) - 1,
        )
    return IntervalOffsets(ranges, tuple(moved) if disorder else ())


def _search_limits(
    states: Sequence[PartitionState],
    known: Known,
    first: Mapping[TopicPartition, int | None],
    unseen: set[TopicPartition],
) -> dict[TopicPartition, int]:
    """Return where to stop the search in each log in which something may be found that no run has."""
    limits = {}
    for state in states:
        before = known.get(state.name)
        # Scheduled runs take the rest.
        limit = state.log_end if before is None or before.next is None else min(state.log_end, before.next)
        begin = state.log_start if state.name in unseen else first[state.name]
        covered = taken_ranges(before, before.generation, 0) if before else []
        if begin is not None and subtract(Range(begin, limit), covered):
            limits[state.name] = limit
    return limits


def _search_boundaries(cluster: Cluster, *searches: Mapping[TopicPartition, TimeBoundary]) -> None:
    """Ask for times of records until all boundaries are known.

    :raises TransientError: a log gave no answer in time.
    """
    while True:
        undecided: dict[TopicPartition, list[TimeBoundary]] = {}
        for name, boundary in (item for search in searches for item in search.items()):
            if not boundary.is_done:
                undecided.setdefault(name, []).append(boundary)
        if not undecided:
            return
        places = {
            name: {place for boundary in boundaries for place in boundary.places()}
            for name, boundaries in undecided.items()
        }
        times = cluster.times_behind(places)
        if silent := sorted(places.keys() - times.keys()):
            raise TransientError(
                f"no answer from {silent[0]} in time, to see which of its records are of the interval; the next "
                "attempt asks again"
            )
        for name, boundaries in undecided.items():
            for boundary in boundaries:
                boundary.see(times[name])

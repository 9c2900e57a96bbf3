"""Proves, with Kafka's time index, that everything before an offset is older than an hour.

The index is exact in one direction only: all records before the first record at or after a time are older than it.
About the records behind it the index proves nothing: one record with a wrong clock hides all that follow.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.model.unsure_hours import LeftOutOffsets
from kafka_archiver.values.intervals import LAST_MS, MS_PER_HOUR, hour_after, hour_start
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

# If several records of one batch have the requested time, brokers may return the last of them.
MARGIN_MS = 1000


def prove_older(
    cluster: Cluster,
    left_out: Mapping[TopicPartition, tuple[Range, ...]],
    starts: Mapping[TopicPartition, int],
    known: Mapping[TopicPartition, LeftOutOffsets],
    present: datetime,
    index: bool = True,
) -> dict[TopicPartition, LeftOutOffsets]:
    """Return the hour before which the records at all of these offsets are.

    For offsets that the log no longer has, earlier answers still hold. Offsets that are gone and that no planner asked
    about may belong to any hour up to now; later hours are judged as of a moment at which they were gone. A log that
    loses offsets meanwhile gets no answer.

    :param starts: where each log began when it was looked at.
    :param known: what earlier planners found out.
    :param present: by the later clock.
    :param index: whether the index knows the times by which records are filed. If not, what is left out has arrived
        before now, and is taken to be of an hour up to now.
    """
    # The last hole of all that a log still has tells of the others, too.
    ends = {name: holes[-1].end for name, holes in left_out.items() if holes[-1].end > starts[name]}
    hours = _hours_behind(cluster, ends if index else {})
    still = cluster.log_starts(left_out)
    evidence = {}
    for name, holes in left_out.items():
        moments = [hour_start(hours[name])] if name in hours else []
        unknown = starts[name] if index else holes[-1].end
        gone = [Range(hole.start, min(hole.end, unknown)) for hole in holes if hole.start < unknown]
        if gone:
            moments.append(_hour_of_gone(gone, known.get(name), present))
        if still[name] == starts[name]:
            evidence[name] = LeftOutOffsets(topic=name.topic, partition=name.partition, ranges=holes, than=max(moments))
    return evidence


def _hour_of_gone(gone: Iterable[Range], known: LeftOutOffsets | None, present: datetime) -> datetime:
    """Return the hour before which all offsets are that are gone of a log: as for losses, no later one than now."""
    latest = hour_after(present)
    if known and not any(subtract(hole, (Range(*r) for r in known.ranges)) for hole in gone):
        return min(known.than, latest)
    return latest


def _hours_behind(cluster: Cluster, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the first hour (since 1970) at whose start each log has nothing before this end."""
    low = dict.fromkeys(ends, 0)
    high = dict.fromkeys(ends, LAST_MS // MS_PER_HOUR + 1)
    latest = latest_times(cluster, ends, LAST_MS)
    while searched := [name for name in ends if low[name] < high[name]]:
        middle = {name: (low[name] + high[name]) // 2 for name in searched}
        for hour in set(middle.values()):
            names = [name for name in searched if middle[name] == hour]
            time = hour * MS_PER_HOUR - MARGIN_MS
            # Including records of open transactions.
            first = cluster.offsets_at(names, max(time, 0), "read_uncommitted")
            for name, offset in first.items():
                # The answer "none" counts only if no time is late enough: brokers may not see a record
                # (`find_hidden_logs`).
                if latest[name] < time if offset is None else offset >= ends[name]:
                    high[name] = hour
                else:
                    low[name] = hour + 1
    # With a record of the year 9999, no hour can be complete.
    return {name: min(hour, LAST_MS // MS_PER_HOUR) for name, hour in low.items()}


def find_hidden_logs(
    cluster: Cluster, first: Mapping[TopicPartition, int | None], milliseconds: int
) -> set[TopicPartition]:
    """Return the logs that may have records of this time or later although the brokers found none.

    A broker searches only the first segment whose latest time is late enough. If `delete_records` let the log begin in
    the middle of that segment, the record with that time may be gone, and later segments are not searched.

    :param first: the brokers' answers to `offsets_at` for this time.
    """
    nothing = [name for name, offset in first.items() if offset is None]
    # An open transaction may have such a record.
    uncommitted = cluster.offsets_at(nothing, milliseconds, "read_uncommitted")
    unknown = [name for name in nothing if uncommitted[name] is None]
    latest = latest_times(cluster, unknown, LAST_MS)
    return {name for name in unknown if latest[name] >= milliseconds}


def latest_times(cluster: Cluster, names: Collection[TopicPartition], at_worst: int) -> dict[TopicPartition, int]:
    """Return the latest timestamp of each log; -1 for an empty one.

    :param at_worst: used if the brokers give no time: they hold it back until the record is replicated.
    """
    latest = cluster.latest_times(names)
    silent = [name for name in names if latest[name] < 0]
    starts, highs = cluster.log_starts(silent), cluster.log_ends(silent, "read_uncommitted")
    return latest | {name: at_worst for name in silent if starts[name] < highs[name]}

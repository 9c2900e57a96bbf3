"""What the brokers say of an archive's partitions at planning."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from kafka_archiver.errors import PolicyError, TransientError
from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR, Interval, hour_start, to_ms
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.policy import Seen
from kafka_archiver.proof import PartitionProgress, Progress
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.context import Context


def look(context: Context, interval: Interval, settled: Progress, unfinished: Sequence[Plan]) -> list[Seen]:
    """Every partition of the archive's topics, sorted."""
    source, cluster = context.archive.source, context.cluster
    topics = cluster.topics(source.wanted)
    ids = {t.name: t.id for t in topics}
    names = [name for topic in topics for name in topic.names]
    committed = cluster.committed(context.archive.group, names)
    starts, ends = cluster.log_starts(names), cluster.log_ends(names, source.isolation)
    interval_starts = cluster.offsets_at(names, to_ms(interval.start), source.isolation)
    interval_starts |= {name: starts[name] for name in _hidden(cluster, interval_starts, interval.start)}
    interval_ends = cluster.offsets_at(names, to_ms(interval.end), source.isolation)
    # Records of open transactions are behind what may be read, and may belong to the interval all the same.
    passed = cluster.offsets_at(names, to_ms(interval.end), "read_uncommitted")
    highs = cluster.log_ends(names, "read_uncommitted")
    if isinstance(source.start, datetime):
        at = cluster.offsets_at(names, to_ms(source.start), source.isolation)
        hidden = _hidden(cluster, at, source.start)
        begins = {
            name: starts[name] if name in hidden else ends[name] if at[name] is None else at[name] for name in names
        }
    else:
        begins = {**(starts if source.start == "earliest" else ends)}
    if cluster.topics(source.wanted) != topics:
        raise TransientError(
            "a topic was made, deleted or enlarged while its offsets were asked for; the next attempt sees all of it"
        )
    pending: dict[TopicPartition, list[PartitionPlan]] = {}
    for partition in (p for plan in unfinished if plan.moves_group for p in plan.partitions):
        pending.setdefault(partition.name, []).append(partition)
    return [
        Seen(
            name=name,
            topic_id=ids[name.topic],
            committed=_position(committed[name], pending.get(name, []), settled.partition(name)),
            log_start=starts[name],
            log_end=ends[name],
            interval_start=interval_starts[name],
            interval_end=interval_ends[name],
            passed=highs[name] if passed[name] is None else passed[name] or 0,
            high=highs[name],
            begin=begins[name] or 0,
        )
        for name in names
    ]


def _hidden(cluster: Cluster, found: Mapping[TopicPartition, int | None], time: datetime) -> set[TopicPartition]:
    """Where records of a time or later may be, although the brokers know of none.

    A broker looks in the first segment alone whose latest time is late enough. Where `delete_records` let the log
    begin in its middle, what has that time may be gone, and what comes behind it is hidden.

    :param found: what the brokers answered to `offsets_at` for this time.
    """
    nothing = [name for name, offset in found.items() if offset is None]
    # There may be one, of an open transaction.
    open_ones = cluster.offsets_at(nothing, to_ms(time), "read_uncommitted")
    unknown = [name for name in nothing if open_ones[name] is None]
    latest = _latest(cluster, unknown, LAST_MS)
    return {name for name in unknown if latest[name] >= to_ms(time)}


def _latest(cluster: Cluster, names: Collection[TopicPartition], at_worst: int) -> dict[TopicPartition, int]:
    """The latest timestamp of each log; -1 for an empty one.

    :param at_worst: what is said where the brokers do not: they keep it back while its record is not replicated.
    """
    latest = cluster.latest_times(names)
    silent = [name for name in names if latest[name] < 0]
    starts, highs = cluster.log_starts(silent), cluster.log_ends(silent, "read_uncommitted")
    return latest | {name: at_worst for name in silent if starts[name] < highs[name]}


def _position(committed: int | None, pending: list[PartitionPlan], before: PartitionProgress | None) -> int | None:
    """Where the group will stand once the unfinished runs are finished; until then it may be at any of their ends."""
    if not pending:
        return committed
    newest = max(p.generation for p in pending)
    settled = before.next if before and before.generation == newest else None
    # The offset that a group had in the log before means nothing in a new generation.
    begins = before is not None and before.generation < newest
    stops = {before.next if before else None, *(p.start for p in pending), *(p.end for p in pending)}
    if not begins and committed not in stops:
        return committed
    return _reached([Range(p.start, p.end) for p in pending if p.generation == newest], settled)


def _reached(pending: list[Range], settled: int | None) -> int:
    """Where the runs end that follow each other: before the first gap between them, if there is any."""
    position = min(r.start for r in pending) if settled is None else settled
    for item in sorted(pending):
        if item.start > position:
            break
        position = max(position, item.end)
    return position


def refuse_hidden_topics(context: Context, expected: Progress, seen: Sequence[Seen]) -> None:
    """A topic that the pattern matched and the brokers do not show any more: hours would look complete without it."""
    pattern = context.archive.source.pattern
    visible = {state.name.topic for state in seen}
    hidden = sorted({p.topic for p in expected.partitions if p.next is not None and p.topic not in visible})
    if pattern and (missing := [topic for topic in hidden if re.fullmatch(pattern, topic)]):
        raise PolicyError(
            f"topics {', '.join(missing)} match source.pattern and were archived before, but the brokers do not show "
            "them any more: they were deleted, or the credentials may not describe them. Grant Describe, or exclude "
            "them in source.pattern"
        )


def complete_from(
    context: Context, begins: Mapping[TopicPartition, int], now: datetime
) -> dict[TopicPartition, datetime]:
    """The first hour of each partition with no record before an offset, as Kafka's time index says.

    It is the first hour at whose start the first offset is not before that offset.
    """
    low = dict.fromkeys(begins, 0)
    high = dict.fromkeys(begins, LAST_MS // MS_PER_HOUR + 1)
    latest = _latest(context.cluster, begins, to_ms(now))
    while searched := [name for name in begins if low[name] < high[name]]:
        middle = {name: (low[name] + high[name]) // 2 for name in searched}
        for hour in set(middle.values()):
            names = [name for name in searched if middle[name] == hour]
            # What an open transaction has is before the beginning, too.
            found = context.cluster.offsets_at(names, hour * MS_PER_HOUR, "read_uncommitted")
            for name, offset in found.items():
                # That there is none is believed when no time is late enough: the brokers may not see it (`_hidden`).
                if latest[name] < hour * MS_PER_HOUR if offset is None else offset >= begins[name]:
                    high[name] = hour
                else:
                    low[name] = hour + 1
    # A record of the year 9999 before the beginning leaves no hour that could be complete.
    return {name: hour_start(min(hour, LAST_MS // MS_PER_HOUR)) for name, hour in low.items()}

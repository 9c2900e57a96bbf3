"""Plan: freeze the offset ranges of an interval before the first byte is read."""

import logging
import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, Self

from kafka_archiver.errors import PolicyError
from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR, Interval, hour_start, to_ms
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.policy import Seen, begins_behind, plan_backfill, plan_forward
from kafka_archiver.proof import Progress
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.context import Context

log = logging.getLogger(__name__)
Origin = Literal["scheduled", "backfill"]
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Work:
    """What one DAG run has to do. `runs`: the ledger's runs it finishes, oldest plan first.

    `archive`: those of them whose offsets have to be read; Spark is skipped when there is none.
    """

    runs: tuple[str, ...]
    archive: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For XCom."""
        return {name: list(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        return cls(**{name: tuple(value) for name, value in data.items()})


def plan(context: Context, interval: Interval, origin: Origin, now: datetime) -> Work:
    """Make sure that the interval has a plan, and say what is to be done.

    Runs that were planned and not settled (their hours not proved) are finished first. An interval that has a plan
    already is replayed by it. Two planners at once: one wins, both use its plan.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    if interval.end > now + CLOCK_SKEW:
        raise PolicyError(
            f"interval {interval} has not ended yet (it is {now:%Y-%m-%d %H:%M:%S} UTC): its hours could not be "
            "complete. Run an interval that is over; check the logical date of a run that was started by hand"
        )
    unfinished = _unfinished(context)
    own = context.ledger.plan(interval.id)
    if own and own.interval != interval:
        raise PolicyError(
            f"run {own.run} is planned for {own.interval}, but this DAG run is about {interval}: the schedule was "
            "changed. What the planned run has is archived; backfill the rest with intervals that start elsewhere, "
            "or under the old schedule"
        )
    if own:
        log.info("interval %s has a plan of %s already: replaying it", interval, f"{own.planned_at:%Y-%m-%d %H:%M:%S}")
    else:
        own = context.ledger.create_plan(_propose(context, interval, origin, now, unfinished))
        log.info("planned interval %s: %s", interval, describe(own))
    plans = {p.run: p for p in [*unfinished, own]}
    for earlier in plans.values():
        if earlier is not own:
            log.info("run %s is not finished: it is finished first (%s)", earlier.run, describe(earlier))
    work = sorted(plans.values(), key=lambda p: (p.planned_at, p.run))
    to_archive = [p for p in work if p.count and (p is own or context.ledger.commit(p.run) is None)]
    for done in work:
        if not done.count and context.ledger.manifest(done.run) is None:
            context.ledger.put_manifest(Manifest.of(done, [], []))
    if not to_archive:
        log.info("nothing to read: Spark is skipped")
    return Work(tuple(p.run for p in work), tuple(p.run for p in to_archive))


def propose(context: Context, interval: Interval, origin: Origin, now: datetime) -> Plan:
    """The plan that would be made now. Writes nothing.

    :raises PolicyError: the brokers' state needs a person's decision.
    """
    return _propose(context, interval, origin, now, _unfinished(context))


def describe(plan: Plan) -> str:
    """A plan in a few words: how many offsets, and the ranges of the first partitions."""
    ranges = [f"{p.name} {r}" for p in plan.partitions for r in p.offset_ranges]
    shown = ", ".join(ranges[:8]) + (f" and {len(ranges) - 8} more" if len(ranges) > 8 else "")
    return f"{plan.count:,} offsets of {len(plan.partitions)} partitions" + (f": {shown}" if shown else "")


def _unfinished(context: Context) -> list[Plan]:
    settled = set((context.ledger.progress() or Progress(archive=context.archive.archive)).runs)
    runs = context.ledger.runs()
    plans = [context.ledger.plan(run) for run, found in runs.items() if "plan" in found and run not in settled]
    return [p for p in plans if p is not None]


def _propose(context: Context, interval: Interval, origin: Origin, now: datetime, unfinished: list[Plan]) -> Plan:
    archive = context.archive
    if members := context.cluster.members(archive.group):
        raise PolicyError(
            f"group {archive.group} has live members: {', '.join(members[:5])}. The archive keeps its position in this "
            "group, and nobody else may commit there; stop those consumers or give the archive a group of its own "
            "(source.group)"
        )
    settled = context.ledger.progress() or Progress(archive=archive.archive)
    expected = settled
    for earlier in unfinished:
        expected = expected.after(earlier)
    seen = _look(context, interval, settled, unfinished)
    _refuse_hidden_topics(context, expected, seen)
    known = {p.name: p for p in expected.partitions}
    if origin == "scheduled":
        seen = _with_complete_from(context, seen, begins_behind(archive, seen, known))
    return Plan(
        archive=archive.archive,
        interval=interval,
        origin=origin,
        planned_at=now,
        cluster_id=context.cluster.cluster_id(),
        group=archive.group,
        settings=archive.settings,
        policies=archive.policies.model_dump(),
        partitions=tuple(plan_backfill(seen, known) if origin == "backfill" else plan_forward(archive, seen, known)),
    )


def _look(context: Context, interval: Interval, settled: Progress, unfinished: list[Plan]) -> list[Seen]:
    source, cluster = context.archive.source, context.cluster
    topics = cluster.topics(source.wanted)
    ids = {t.name: t.id for t in topics}
    names = [name for topic in topics for name in topic.names]
    committed = cluster.committed(context.archive.group, names)
    starts, ends = cluster.log_starts(names), cluster.log_ends(names, source.isolation)
    interval_starts = cluster.offsets_at(names, to_ms(interval.start), source.isolation)
    interval_ends = cluster.offsets_at(names, to_ms(interval.end), source.isolation)
    # Records of open transactions are behind what may be read, and may belong to the interval all the same.
    passed = cluster.offsets_at(names, to_ms(interval.end), "read_uncommitted")
    highs = cluster.log_ends(names, "read_uncommitted")
    if isinstance(source.start, datetime):
        at = cluster.offsets_at(names, to_ms(source.start), source.isolation)
        begins = {name: ends[name] if at[name] is None else at[name] for name in names}
    else:
        begins = {**(starts if source.start == "earliest" else ends)}
    seen = []
    for name in names:
        position = committed[name]
        # Until an unfinished run moves the group, it may stand at any end of those runs' ranges.
        pending = [p for plan in unfinished if plan.moves_group for p in plan.partitions if p.name == name]
        before = settled.partition(name)
        stops = {before.next if before else None, *(p.start for p in pending), *(p.end for p in pending)}
        if pending and position in stops:
            position = _reached([Range(p.start, p.end) for p in pending], before.next if before else None)
        seen.append(
            Seen(
                name=name,
                topic_id=ids[name.topic],
                committed=position,
                log_start=starts[name],
                log_end=ends[name],
                interval_start=interval_starts[name],
                interval_end=interval_ends[name],
                passed=highs[name] if passed[name] is None else passed[name] or 0,
                begin=begins[name] or 0,
            )
        )
    return seen


def _reached(pending: list[Range], settled: int | None) -> int:
    """Where the group will stand once the unfinished runs are finished: up to the first gap between them, if any."""
    position = min(r.start for r in pending) if settled is None else settled
    for item in sorted(pending):
        if item.start > position:
            break
        position = max(position, item.end)
    return position


def _refuse_hidden_topics(context: Context, expected: Progress, seen: list[Seen]) -> None:
    """A topic that the pattern matched and the brokers do not show any more: hours would look complete without it."""
    pattern = context.archive.source.pattern
    visible = {state.name for state in seen}
    hidden = sorted({p.topic for p in expected.partitions if p.next is not None and p.name not in visible})
    if pattern and (missing := [topic for topic in hidden if re.fullmatch(pattern, topic)]):
        raise PolicyError(
            f"topics {', '.join(missing)} match source.pattern and were archived before, but the brokers do not show "
            "them any more: they were deleted, or the credentials may not describe them. Grant Describe, or exclude "
            "them in source.pattern"
        )


def _with_complete_from(context: Context, seen: list[Seen], begins: dict[TopicPartition, int]) -> list[Seen]:
    """For partitions that begin behind their log's start: the first hour with no record before the beginning.

    Kafka's time index says it: the first hour at whose start the first offset is not before the beginning.
    """
    low = dict.fromkeys(begins, 0)
    high = dict.fromkeys(begins, LAST_MS // MS_PER_HOUR + 1)
    while searched := [name for name in begins if low[name] < high[name]]:
        middle = {name: (low[name] + high[name]) // 2 for name in searched}
        for hour in set(middle.values()):
            names = [name for name in searched if middle[name] == hour]
            found = context.cluster.offsets_at(names, hour * MS_PER_HOUR, context.archive.source.isolation)
            for name, offset in found.items():
                if offset is None or offset >= begins[name]:
                    high[name] = hour
                else:
                    low[name] = hour + 1
    whole = {name: hour_start(hour) for name, hour in low.items()}
    return [replace(state, complete_from=whole.get(state.name)) for state in seen]

"""The offset ranges that a plan takes of each partition, cut to `source.max_records_per_run`, and the losses. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_archiver.messages.errors import PolicyError
from kafka_archiver.model.plan import PartitionPlan
from kafka_archiver.planning.beginnings import generation_of, taken_ranges
from kafka_archiver.planning.partition_state import Beginning, Known, PartitionState
from kafka_archiver.planning.policy_decisions import recreated_message, truncated_message
from kafka_archiver.values.ranges import Range, TopicPartition, share, subtract


def plan_forward(
    limit: int, partition_states: Iterable[PartitionState], known: Known, starts: Mapping[TopicPartition, Beginning]
) -> list[PartitionPlan]:
    """Return the partitions' part of a scheduled run: from the end of the last run to the end of the log.

    :param limit: the most offsets of all partitions together.
    :param known: what settled and planned runs cover already, by partition.
    """
    states = list(partition_states)
    covered = {
        s.name: taken_ranges(known.get(s.name), starts[s.name].generation, starts[s.name].start, starts[s.name].anew)
        for s in states
    }
    left = {s.name: subtract(Range(max(starts[s.name].start, s.log_start), s.log_end), covered[s.name]) for s in states}
    granted = share({name: sum(r.size for r in ranges) for name, ranges in left.items()}, limit)
    planned = []
    for state in states:
        start, ranges = starts[state.name].start, _first_offsets(left[state.name], granted[state.name])
        whole = sum(r.size for r in left[state.name]) == granted[state.name]
        end = max(start, state.log_end if whole else ranges[-1].end if ranges else start)
        lost = subtract(Range(start, max(start, state.log_start)), covered[state.name])
        planned.append(
            _partition_plan(
                state,
                generation=starts[state.name].generation,
                start=start,
                end=end,
                ranges=ranges,
                lost=lost,
                anew=starts[state.name].anew,
                decided=tuple(map(str, starts[state.name].decided)),
                stood=state.committed if starts[state.name].decided else None,
            )
        )
    return planned


def plan_backfill(
    states: Iterable[PartitionState],
    known: Known,
    candidates: Mapping[TopicPartition, Range],
    limit: int | None = None,
) -> list[PartitionPlan]:
    """Return the partitions' part of a backfill: the offsets of the interval that no plan covers. The group is not
    moved.

    :param candidates: the offsets that Kafka's time index puts into the interval, or all that are left out.
    :param limit: the most offsets of all partitions together.
    :raises PolicyError: a log is not the archived log, and no scheduled run has begun a new generation yet.
    """
    planned = []
    for state in states:
        before = known.get(state.name)
        other = recreated_message(state, before) if before and before.topic_id != state.topic_id else state.doubt
        if before and other:
            raise PolicyError(
                f"{other} A backfill does not begin a new generation; run the archive on its schedule first "
                "(policies.recreated_topic), then backfill"
            )
        if before and before.next is not None and before.next > state.high:
            raise PolicyError(truncated_message(state, before.next))
        generation = before.generation if before else generation_of(state, known)
        start, end = candidates[state.name]
        ranges = subtract(Range(start, end), taken_ranges(before, generation, 0))
        planned.append(_partition_plan(state, generation=generation, start=start, end=end, ranges=ranges))
    if limit is None:
        return planned
    granted = share({p.name: p.count for p in planned}, limit)
    return [p.model_copy(update={"ranges": _first_offsets(p.offset_ranges, granted[p.name])}) for p in planned]


def _partition_plan(state: PartitionState, **decided: Any) -> PartitionPlan:
    """Return a partition's plan: the planner's decisions and the brokers' state."""
    return PartitionPlan(
        topic=state.name.topic,
        topic_id=state.topic_id,
        partition=state.name.partition,
        log_start=state.log_start,
        log_end=state.log_end,
        # Without a high watermark, the plan closes no hour.
        high=None if state.unsure else state.high,
        unsure=state.unsure or None,
        leader_epoch=state.leader_epoch,
        cut=state.cut,
        appended_by=state.appended_by,
        **decided,
    )


def _first_offsets(ranges: tuple[Range, ...], count: int) -> tuple[Range, ...]:
    taken_: list[Range] = []
    for item in ranges:
        if count <= 0:
            break
        taken_.append(Range(item.start, item.start + min(item.size, count)))
        count -= taken_[-1].size
    return tuple(taken_)

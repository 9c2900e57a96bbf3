"""The offsets that no plan has. Kafka's time index may say how old they are. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import EventTime
from kafka_archiver.model.unsure_hours import LeftOutOffsets
from kafka_archiver.planning.beginnings import taken_ranges
from kafka_archiver.planning.partition_state import Known
from kafka_archiver.values.intervals import hour_after
from kafka_archiver.values.ranges import Range, TopicPartition, subtract


def left_out(
    planned: Iterable[PartitionPlan],
    known: Known,
    asked: Mapping[TopicPartition, LeftOutOffsets],
    scheduled: bool,
    present: datetime,
) -> dict[TopicPartition, tuple[Range, ...]]:
    """Return the offsets of each log that no plan has, before the place where scheduled runs began or begin now.

    Only logs that have such offsets, and about which there is something new to ask.

    :param known: without the plan that is being made.
    :param asked: what is known already about the age of such offsets.
    :param scheduled: whether the plan is a scheduled run's; a backfill may have added knowledge.
    :param present: by the later clock. What is gone by then is of no later hour: that is new for times after it.
    """
    missing = {}
    for plan in planned:
        before = None if plan.anew else known.get(plan.name)
        end = plan.start if scheduled else (before.next if before else None) or 0
        floor = before.floor if before else plan.log_start
        covered = [
            *plan.offset_ranges,
            *(Range(*r) for r in plan.lost),
            *taken_ranges(before, plan.generation, plan.start),
        ]
        holes = subtract(Range(floor, end), covered)
        observed = asked.get(plan.name) if scheduled and before else None
        # Once: an answer about what is gone takes the observations of earlier planners away.
        is_gone = holes and holes[-1].end <= plan.log_start
        is_sooner = observed and is_gone and observed.than > hour_after(present)
        known_already = observed.ranges if observed and not is_sooner else ()
        if any(subtract(hole, (Range(*r) for r in known_already)) for hole in holes):
            missing[plan.name] = holes
    return missing


def still_true(
    asked: Mapping[TopicPartition, LeftOutOffsets], time: EventTime, before: Plan | None
) -> dict[TopicPartition, LeftOutOffsets]:
    """Return what is known of offsets that no plan has, of what still says something: the YAML may have another time.

    :param before: the plan before. Those of earlier releases did not say by which time they knew it.
    """
    if before and before.hour_rules < 3:
        return dict(asked) if before.settings.time.is_known_to_kafka == time.is_known_to_kafka else {}
    return {name: older for name, older in asked.items() if older.holds_for(time)}


def with_older(
    planned: Iterable[PartitionPlan], older: Mapping[TopicPartition, LeftOutOffsets]
) -> tuple[PartitionPlan, ...]:
    """Return the same partitions, with what is known about the offsets that they leave out."""
    return tuple(
        p.model_copy(update={"older": older[p.name].ranges, "older_than": older[p.name].than}) if p.name in older else p
        for p in planned
    )

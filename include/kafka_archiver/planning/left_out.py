"""What no plan has of a log, of which Kafka's time index may say how old it is. Pure."""

from collections.abc import Iterable, Mapping

from kafka_archiver.plan import PartitionPlan
from kafka_archiver.planning.beginnings import taken
from kafka_archiver.planning.state import Known
from kafka_archiver.progress import Older
from kafka_archiver.ranges import Range, TopicPartition, subtract


def left_out(
    planned: Iterable[PartitionPlan], known: Known, asked: Mapping[TopicPartition, Older], scheduled: bool
) -> dict[TopicPartition, tuple[Range, ...]]:
    """What no plan has of each log before the place where scheduled runs began, or begin now.

    Without logs that have all, and without those of which nothing new is to be asked.

    :param known: without the plan that is being made.
    :param asked: what is known of them already.
    :param scheduled: whether it is a scheduled run's; a backfill may have made more known.
    """
    found = {}
    for plan in planned:
        before = None if plan.anew else known.get(plan.name)
        end = plan.start if scheduled else (before.next if before else None) or 0
        floor = before.floor if before else plan.log_start
        covered = [*plan.offset_ranges, *(Range(*r) for r in plan.lost), *taken(before, plan.generation, plan.start)]
        holes = subtract(Range(floor, end), covered)
        known_already = asked[plan.name].ranges if scheduled and before and plan.name in asked else ()
        if any(subtract(hole, (Range(*r) for r in known_already)) for hole in holes):
            found[plan.name] = holes
    return found


def with_older(planned: Iterable[PartitionPlan], older: Mapping[TopicPartition, Older]) -> tuple[PartitionPlan, ...]:
    """The same, with what is known of the offsets that they leave out."""
    return tuple(
        p.model_copy(update={"older": older[p.name].ranges, "older_than": older[p.name].than}) if p.name in older else p
        for p in planned
    )

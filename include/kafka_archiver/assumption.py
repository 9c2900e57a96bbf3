"""An hour proved alone, by what its archive assumes of the order of times (`timestamp.max_disorder`). Pure."""

from kafka_archiver.intervals import hours_between, to_hour
from kafka_archiver.manifest import Manifest
from kafka_archiver.order import Order
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.progress import PartitionProgress, Progress
from kafka_archiver.proof import Judgement
from kafka_archiver.ranges import Range, subtract


def assumed(plan: Plan, manifest: Manifest | None, after: Progress) -> dict[int, Judgement]:
    """The hours of a backfill's interval that are complete as long as no record is that much older than an earlier one.

    :param after: the progress with this run.
    """
    if plan.max_disorder_ms is None or manifest is None:
        return {}
    known = {p.name: p for p in after.partitions}
    if not all(_has_all(p, known[p.name], plan.max_disorder_ms) for p in plan.partitions):
        return {}
    over = min(plan.interval.end, plan.planned_at)
    said = f"no record is more than {plan.max_disorder_ms / 1000:g} s older than an earlier one of its partition"
    unsure = to_hour(after.unsure.until) if after.unsure else 0
    hours = (hour for hour in hours_between(plan.interval.start, over) if hour >= unsure)
    return {hour: Judgement("complete", plan.planned_at, assumes=said) for hour in hours}


def _has_all(planned: PartitionPlan, known: PartitionProgress, limit_ms: int) -> bool:
    """Whether nothing of the interval is before or behind what was archived, by the assumption.

    What else is known of the log must not contradict it, and all of the range must have been looked at for that: in
    what another backfill has read, one record of a wrong clock may have hidden all behind it.
    """
    order = known.order or Order()
    taken = [Range(*r) for r in known.covered + known.earlier]
    # What retention removed may have been of the interval; what open transactions hold back, too.
    cut = 0 < planned.start <= planned.log_start and bool(subtract(Range(planned.start - 1, planned.start), taken))
    # A further revision has not looked at the end of the log again, and what came there since may be of it as well.
    held = planned.end == planned.log_end and (planned.high is None or planned.high > planned.log_end)
    same = known.generation == planned.generation
    return same and not cut and not held and order.has(Range(planned.start, planned.end)) and order.disorder <= limit_ms

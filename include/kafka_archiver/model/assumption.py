"""Proves single hours by what the archive assumes about the order of times (`timestamp.max_disorder`). Pure."""

from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.order import Order
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Judgement
from kafka_archiver.model.unsure_hours import assumption_of
from kafka_archiver.values.intervals import hours_between, to_hour
from kafka_archiver.values.ranges import Range, subtract


def assumed(plan: Plan, manifest: Manifest | None, after: Progress) -> dict[int, Judgement]:
    """The hours of a backfill's interval that are complete if the assumption holds.

    :param after: the progress that includes this run.
    """
    if plan.max_disorder_ms is None or manifest is None:
        return {}
    known = {p.name: p for p in after.partitions}
    if not all(_has_all(p, known[p.name], plan.max_disorder_ms) for p in plan.partitions):
        return {}
    over = min(plan.interval.end, plan.planned_at)
    unsure = to_hour(after.unsure_until) if after.unsure_until else 0
    hours = (hour for hour in hours_between(plan.interval.start, over) if hour >= unsure)
    limit = min(plan.max_disorder_ms, after.if_ordered.disorder_ms if after.if_ordered else plan.max_disorder_ms)
    return {hour: Judgement("complete", plan.planned_at, assumes=assumption_of(limit)) for hour in hours}


def _has_all(planned: PartitionPlan, known: PartitionProgress, limit_ms: int) -> bool:
    """Whether, by the assumption, no record of the interval lies outside the archived offsets.

    The known times of the log must not contradict the assumption, and all of the range must have been read to know
    them: in another backfill's range, one record with a wrong clock may have hidden all behind it.
    """
    order = known.order or Order()
    taken = [Range(*r) for r in known.covered + known.earlier]
    # Records of the interval may be among those that retention removed, or that open transactions hold back.
    cut = 0 < planned.start <= planned.log_start and bool(subtract(Range(planned.start - 1, planned.start), taken))
    # A further revision has no high watermark, so records that came since may be of the interval, too.
    is_held_back = planned.end == planned.log_end and (planned.high is None or planned.high > planned.log_end)
    same = known.generation == planned.generation
    return (
        same
        and not cut
        and not is_held_back
        and order.has(Range(planned.start, planned.end))
        and order.disorder <= limit_ms
    )

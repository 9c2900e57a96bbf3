"""Complete hours: the verdict on an hour, and why it is open or incomplete. Pure.

`model/marks` says which hours are over and wholly archived, `model/unsure_hours` which may lack lost records.
"""

from typing import Literal, NamedTuple

from kafka_archiver.messages.wording import offset_span
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.order import Order
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.reasons import reason_of_holes
from kafka_archiver.model.unsure_hours import assumption_of
from kafka_archiver.values.documents import UtcTime
from kafka_archiver.values.intervals import hours_between, to_hour
from kafka_archiver.values.ranges import Range, subtract

# open: more may come. complete: nothing is missing. incomplete: past, and what is missing will not come by itself.
Verdict = Literal["open", "complete", "incomplete"]


class Judgement(NamedTuple):
    """The present verdict on an hour."""

    status: Verdict
    as_of: UtcTime | None = None
    reason: str | None = None
    assumes: str | None = None


def judge_hour(progress: Progress, hour: int | None) -> Judgement:
    """Return the verdict on an hour once these runs are settled."""
    until, unsure, whole = progress.closed_until, progress.unsure, progress.whole_from
    if hour is None or until is None or hour >= to_hour(until):
        return Judgement("open")
    assumes = None
    if unsure and hour < to_hour(unsure.until):
        assumed = progress.if_ordered
        if assumed is None or hour < to_hour(assumed.until):
            return Judgement("incomplete", reason=(assumed or unsure).reason)
        assumes = assumption_of(assumed.disorder_ms)
    if whole and hour < to_hour(whole):
        return Judgement("incomplete", reason=reason_for_holes(progress))
    return Judgement("complete", progress.as_of, assumes=assumes)


def complete_if_ordered(plan: Plan, manifest: Manifest | None, after: Progress) -> dict[int, Judgement]:
    """Return the hours of a backfill's interval that are complete if times are in the order that the plan assumes.

    :param after: the progress that includes this run.
    """
    if plan.max_disorder_ms is None or manifest is None:
        return {}
    known = after.by_name()
    if not all(_has_all(p, known[p.name], plan.max_disorder_ms) for p in plan.partitions):
        return {}
    over = min(plan.interval.end, plan.planned_at)
    unsure = to_hour(after.unsure_until) if after.unsure_until else 0
    hours = (hour for hour in hours_between(plan.interval.start, over) if hour >= unsure)
    limit = min(plan.max_disorder_ms, after.if_ordered.disorder_ms if after.if_ordered else plan.max_disorder_ms)
    return {hour: Judgement("complete", plan.planned_at, assumes=assumption_of(limit)) for hour in hours}


def _has_all(planned: PartitionPlan, known: PartitionProgress, limit_ms: int) -> bool:
    """Return True if, by the assumption, no record of the interval lies outside the archived offsets.

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


def reason_for_holes(progress: Progress) -> str:
    """Return the reason why hours before `whole_from` are incomplete."""
    holes = [
        f"{offset_span(*hole)} of {older.topic}, partition {older.partition}"
        for older, left in progress.older_holes()
        for hole in left
    ]
    more = f" and {len(holes) - 3} more" if len(holes) > 3 else ""
    return reason_of_holes(progress.archive, f"{'; '.join(holes[:3])}{more}")

"""Plan: freeze the offset ranges of an interval before the first byte is read."""

from kafka_archiver.work.plan.dry_run import Preview, preview
from kafka_archiver.work.plan.fill import Fill
from kafka_archiver.work.plan.interval_plan import Origin, count_left_out, is_planned_since, plan, propose
from kafka_archiver.work.planned_work import PlannedWork

__all__ = [
    "Fill",
    "Origin",
    "PlannedWork",
    "Preview",
    "count_left_out",
    "is_planned_since",
    "plan",
    "preview",
    "propose",
]

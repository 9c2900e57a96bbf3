"""Plan: freeze the offset ranges of an interval before the first byte is read."""

from kafka_archiver.work.plan.dry_run import Preview, preview
from kafka_archiver.work.plan.fill import Fill
from kafka_archiver.work.plan.interval_plan import Origin, has_newer, left_out_of, plan, propose
from kafka_archiver.work.planned_work import Work

__all__ = ["Fill", "Origin", "Preview", "Work", "has_newer", "left_out_of", "plan", "preview", "propose"]

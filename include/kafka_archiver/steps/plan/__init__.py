"""Plan: freeze the offset ranges of an interval before the first byte is read."""

from kafka_archiver.steps.plan.dry_run import Preview, preview
from kafka_archiver.steps.plan.step import Origin, has_newer, plan, propose
from kafka_archiver.steps.work import Work

__all__ = ["Origin", "Preview", "Work", "has_newer", "plan", "preview", "propose"]

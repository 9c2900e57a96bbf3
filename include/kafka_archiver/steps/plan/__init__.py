"""Plan: freeze the offset ranges of an interval before the first byte is read."""

from kafka_archiver.steps.plan.step import Origin, has_newer, plan, propose
from kafka_archiver.steps.work import Work

__all__ = ["Origin", "Work", "has_newer", "plan", "propose"]

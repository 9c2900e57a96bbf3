"""The doctor: finds every strange state before a run does, and tries what a run needs. One module a subject."""

from kafka_archiver.steps.doctor.check import Check
from kafka_archiver.steps.doctor.examine import examine

__all__ = ["Check", "examine"]

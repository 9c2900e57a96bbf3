"""Status: how far an archive is, how far behind, and what is wrong with it."""

from kafka_archiver.steps.status.step import ArchiveStatus, HourStatus, last_hours, status

__all__ = ["ArchiveStatus", "HourStatus", "last_hours", "status"]

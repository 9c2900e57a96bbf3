"""Status: the progress, the lag and the troubles of an archive."""

from kafka_archiver.state.status.step import ArchiveStatus, HourStatus, last_commit, last_hours, status

__all__ = ["ArchiveStatus", "HourStatus", "last_commit", "last_hours", "status"]

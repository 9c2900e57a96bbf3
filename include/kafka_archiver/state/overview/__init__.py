"""Overview: what a page, a health check and metrics say of one archive at one moment."""

from kafka_archiver.state.overview.snapshot import LastAudit, LastRun, Snapshot
from kafka_archiver.state.overview.take_snapshot import take_snapshot

__all__ = ["LastAudit", "LastRun", "Snapshot", "take_snapshot"]

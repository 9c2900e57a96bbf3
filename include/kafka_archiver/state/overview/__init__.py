"""Overview: what a page, a health check and metrics say of one archive at one moment."""

from kafka_archiver.state.overview.look import look
from kafka_archiver.state.overview.snapshot import LastAudit, LastRun, Snapshot

__all__ = ["LastAudit", "LastRun", "Snapshot", "look"]

"""Overview: what a page, a health check and metrics say of one archive at one moment."""

from kafka_archiver.steps.overview.look import look
from kafka_archiver.steps.overview.snapshot import Audited, LastRun, Snapshot

__all__ = ["Audited", "LastRun", "Snapshot", "look"]

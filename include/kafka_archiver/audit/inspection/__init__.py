"""The audit's reading; the judgements are in `kafka_archiver.audit`."""

from kafka_archiver.audit.inspection.step import audit, publish

__all__ = ["audit", "publish"]

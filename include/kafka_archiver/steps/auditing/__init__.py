"""The audit's reading; the judgements are in `kafka_archiver.audit`."""

from kafka_archiver.steps.auditing.step import audit, publish

__all__ = ["audit", "publish"]

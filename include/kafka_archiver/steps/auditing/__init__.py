"""The audit's reading and asking; what it makes of it is in `kafka_archiver.audit`."""

from kafka_archiver.steps.auditing.step import audit, publish

__all__ = ["audit", "publish"]

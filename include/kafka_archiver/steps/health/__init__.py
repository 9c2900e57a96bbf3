"""Health: whether an archive is well, by the facts of a snapshot and the limits in its YAML. Pure."""

from kafka_archiver.steps.health.check import HealthCheck, Verdict, worst
from kafka_archiver.steps.health.judge import judge

__all__ = ["HealthCheck", "Verdict", "judge", "worst"]

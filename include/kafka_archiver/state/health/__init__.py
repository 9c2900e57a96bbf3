"""Health: whether an archive is well, by the facts of a snapshot and the limits in its YAML. Pure."""

from kafka_archiver.state.health.judge import VERDICTS, HealthCheck, Verdict, as_check, judge, verdict_of

__all__ = ["VERDICTS", "HealthCheck", "Verdict", "as_check", "judge", "verdict_of"]

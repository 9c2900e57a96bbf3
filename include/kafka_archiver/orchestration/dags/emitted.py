"""The figures of a run as metrics of Airflow's own: statsd or OpenTelemetry, whatever Airflow is configured for."""

import logging

from airflow.sdk.observability import stats

from kafka_archiver.orchestration.dag_run.figures import Figures

log = logging.getLogger(__name__)
PREFIX = "kafka_archiver"
# Sums over runs. A cleared task counts again, as Airflow's own counters do.
COUNTERS = ("records", "objects", "bytes", "filtered", "dead_letters", "lost", "hours_closed")


def emit(archive: str, figures: Figures) -> None:
    """Count what a run has done. Plain statsd has no tags, so the name has the archive too."""
    name = stats.normalize_name_for_stats(archive.replace(".", "__"), log_warning=False)
    for counter in COUNTERS:
        count = getattr(figures, counter)
        stats.incr(f"{PREFIX}.{counter}", count, tags={"archive": archive})
        stats.incr(f"{PREFIX}.{name}.{counter}", count)

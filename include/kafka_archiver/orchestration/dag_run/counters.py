"""The figures of DAG runs as metrics of Airflow's own: statsd, OpenTelemetry, or none, as it is configured."""

from kafka_archiver.orchestration.dag_run.figures import Figures

PREFIX = "kafka_archiver"
# Sums over runs. A cleared task counts again, as Airflow's own counters do.
COUNTERS = ("records", "objects", "bytes", "filtered", "dead_letters", "lost", "hours_closed")


def emit(archive: str, figures: Figures) -> None:
    """Count what a run has done, as statsd or OpenTelemetry, whatever Airflow is configured for.

    Plain statsd has no tags, so the name has the archive too.
    """
    from airflow.sdk.observability import stats

    name = stats.normalize_name_for_stats(archive.replace(".", "__"), log_warning=False)
    for counter in COUNTERS:
        number = getattr(figures, counter)
        stats.incr(f"{PREFIX}.{counter}", number, tags={"archive": archive})
        stats.incr(f"{PREFIX}.{name}.{counter}", number)

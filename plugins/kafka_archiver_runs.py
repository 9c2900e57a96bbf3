"""Gives each run of an archive's DAG a note in one line: what it has done, or why it failed."""

from airflow.plugins_manager import AirflowPlugin

from kafka_archiver.orchestration.metadata import notes


class ArchiverRuns(AirflowPlugin):
    """Listens to the scheduler."""

    name = "kafka_archiver_runs"
    listeners = (notes,)

"""The DAGs `archive_…`, one for each archive."""

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import archive_dags

# A wrong YAML file has no DAG here; archive_errors.py beside this file shows its error.
globals().update(archive_dags(only=get_parsing_context().dag_id)[0])

"""The DAGs `audit_…`, one for each archive."""

from airflow.sdk import get_parsing_context

from kafka_archiver.orchestration.dags import audit_dags

# archive_errors.py beside this file shows the errors of wrong YAML files.
globals().update(audit_dags(only=get_parsing_context().dag_id))

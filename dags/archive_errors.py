"""Shows the errors of wrong YAML files as an import error of this file. Has no DAG, so Airflow stops none for it."""

from kafka_archiver import airflow_dag_errors

airflow_dag_errors()

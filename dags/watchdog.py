"""The DAG `archiver_watchdog`, which tells what no run of an archive can tell."""

from airflow.sdk import get_parsing_context

from kafka_archiver.messages.advice import WATCHDOG
from kafka_archiver.orchestration.dags import watchdog_dag

if get_parsing_context().dag_id in (None, WATCHDOG):
    globals()[WATCHDOG] = watchdog_dag()

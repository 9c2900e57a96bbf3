"""The DAG that watches all archives. It needs no YAML file to be valid."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, task
from airflow.sdk.exceptions import AirflowRuntimeError

from kafka_archiver.config.archives import config_folder, read_archives
from kafka_archiver.messages.advice import WATCHDOG
from kafka_archiver.messages.errors import TransientError

log = logging.getLogger(__name__)
EVERY = "*/5 * * * *"


def watchdog_dag(text: str) -> DAG:
    """Return the DAG. It is on from its beginning.

    :param text: its documentation.
    """
    with DAG(
        dag_id=WATCHDOG,
        description="Sends alerts when an archive does not run, is not audited, or has no valid YAML file",
        doc_md=text,
        schedule=CronTriggerTimetable(EVERY, timezone="UTC"),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=["archiver"],
        default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
        auto_register=False,
    ) as dag:
        _watch()
    return dag


class _Dags:
    """The DAGs, by Airflow's execution API. :param ti: the task that asks."""

    def __init__(self, ti: Any) -> None:
        self._ti = ti

    def is_paused(self, dag: str) -> bool | None:
        try:
            return bool(self._ti.get_dag(dag).is_paused)
        except AirflowRuntimeError as error:
            if (error.error.detail or {}).get("status_code") == 404:
                return None
            raise TransientError(f"Airflow does not say whether DAG {dag} is paused: {error}") from error


def _watch() -> Any:
    @task(task_id="watch", doc_md="Looks at each archive, and sends the alerts that its runs cannot send.")
    def watch() -> None:
        # Imported late: they load S3's client, and Airflow parses this module all day.
        from kafka_archiver.orchestration.dags.watching import Memory, Watchdog

        ti, memory = get_current_context()["ti"], Memory.read()
        archives = read_archives(config_folder())
        failures = Watchdog(_Dags(ti), memory, ti.log_url, datetime.now(UTC)).look(archives)
        memory.write()
        log.info("%d archives looked at; %d files are wrong", len(archives.valid), len(archives.errors))
        if failures:
            raise TransientError(f"not looked at: {'; '.join(failures)}")

    return watch()

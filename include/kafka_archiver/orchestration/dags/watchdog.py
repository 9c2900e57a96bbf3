"""The DAG that watches all archives. It needs no YAML file to be valid."""

import logging
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, task
from airflow.sdk.exceptions import AirflowRuntimeError

from kafka_archiver.config.archives import read_archives
from kafka_archiver.messages.advice import WATCHDOG
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.messages.wording import count
from kafka_archiver.orchestration.folder import config_folder

log = logging.getLogger(__name__)
EVERY = "*/5 * * * *"
_TEXT = """\
Tells what no run of an archive can tell, because none starts.

Every five minutes it looks at each archive's YAML file, at its ledger, and at what Airflow says of its DAGs:

| Alert | When |
|---|---|
| `paused` | the DAG is paused, and more and more offsets wait, or no hour has closed for longer than the limit |
| `late_hour` | no hour has closed for longer than `alerts.max_age`, or `health.max_age` |
| `unaudited`, `audit` | the audits do not run; the last one found damage of which nobody was told |
| `wrong_file`, `gone` | a YAML file is wrong, or was deleted |

Each is told once, to the archive's own receivers, or else to those in `ARCHIVER_WATCHDOG_ALERTS`. What stops this DAG
too (no scheduler, no worker) is for a prober outside of Airflow: `/archiver/health`.
"""


def watchdog_dag(folder: Path | None = None) -> DAG:
    """Return the DAG. It is on from its beginning.

    :param folder: of the YAML files; None: as `config_folder` has it.
    """
    with DAG(
        dag_id=WATCHDOG,
        description="Sends alerts when an archive does not run, is not audited, or has no valid YAML file",
        doc_md=_TEXT,
        schedule=CronTriggerTimetable(EVERY, timezone="UTC"),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        tags=["archiver"],
        default_args={"retries": 1, "retry_delay": timedelta(seconds=30)},
        auto_register=False,
    ) as dag:
        _watch(folder)
    return dag


def _is_paused(ti: Any, dag: str) -> bool | None:
    """Ask Airflow's execution API for a task; None: there is no such DAG."""
    try:
        return bool(ti.get_dag(dag).is_paused)
    except AirflowRuntimeError as error:
        if (error.error.detail or {}).get("status_code") == 404:
            return None
        raise TransientError(f"Airflow does not say whether DAG {dag} is paused: {error}") from error


def _watch(folder: Path | None) -> Any:
    @task(task_id="watch", doc_md="Looks at each archive, and sends the alerts that its runs cannot send.")
    def watch() -> None:
        # Imported late: they load S3's client, and Airflow parses this module all day.
        from kafka_archiver.orchestration.dags.watchdog_looks import Memory, Watchdog

        ti, memory = get_current_context()["ti"], Memory.read()
        archives = read_archives(folder or config_folder())
        failures = Watchdog(partial(_is_paused, ti), memory, ti.log_url, datetime.now(UTC)).look(archives)
        memory.write()
        is_wrong = "is wrong" if len(archives.errors) == 1 else "are wrong"
        log.info(
            "%s looked at; %s %s", count(len(archives.valid), "archive"), count(len(archives.errors), "file"), is_wrong
        )
        if failures:
            raise TransientError(f"not looked at: {'; '.join(failures)}")

    return watch()

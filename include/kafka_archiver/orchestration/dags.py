"""One archive, one DAG: plan → archive → verify → commit → close_hours."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import (
    DAG,
    ExceptionRetryPolicy,
    Param,
    PokeReturnValue,
    RetryAction,
    RetryRule,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError, PermanentError
from kafka_archiver.orchestration.archives import config_folder, read_archives
from kafka_archiver.orchestration.assets import announce, hours_alias
from kafka_archiver.orchestration.callbacks import FailureAlert
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.docs import doc_md
from kafka_archiver.orchestration.gate import PLAN, runs_in_the_middle
from kafka_archiver.orchestration.operators import ArchiveOperator, work_of
from kafka_archiver.orchestration.schedule import interval_of, origin_of, timetable

log = logging.getLogger(__name__)


def archive_dags(text: str, job: Path, only: str | None = None) -> tuple[dict[str, DAG], list[ConfigError]]:
    """The DAGs of all archives by DAG id, and what is wrong with the others' YAML.

    :param text: the documentation that they share.
    :param job: spark_jobs/archive.py.
    :param only: the one DAG id that is wanted, when a task of it is about to run.
    """
    archives, errors = read_archives(config_folder())
    dags = {}
    for archive in archives.values():
        if only in (None, dag_id(archive)):
            try:
                dags[dag_id(archive)] = archive_dag(archive, text, job)
            except (AirflowException, ValueError, TypeError) as error:
                errors.append(ConfigError(f"archive {archive.archive}: Airflow cannot make a DAG of it: {error}"))
    return dags, errors


def dag_id(archive: Archive) -> str:
    """The id of an archive's DAG."""
    return f"archive_{archive.archive}"


def archive_dag(archive: Archive, text: str, job: Path) -> DAG:
    """The DAG of one archive."""
    with DAG(
        dag_id=dag_id(archive),
        description=archive.description or f"Archives {_topics(archive)} to {archive.store.url}",
        doc_md=doc_md(archive, text),
        schedule=timetable(archive),
        catchup=False,
        max_active_runs=1,
        tags=_tags(archive),
        params={"max_records": _max_records(archive)},
        default_args=_default_args(archive),
        # The caller decides which of them its module shows to Airflow.
        auto_register=False,
    ) as dag:
        chain(*_tasks(archive, job))
    return dag


def _tasks(archive: Archive, job: Path) -> list[Any]:
    # What a task calls is imported when it runs: it loads Kafka's and S3's clients, and Airflow parses this all day.
    @task.sensor(
        task_id=PLAN,
        mode="reschedule",
        poke_interval=10,
        exponential_backoff=True,
        max_wait=60,
        timeout=timedelta(days=7).total_seconds(),
        doc_md="Waits for its turn, then freezes the offset ranges of the interval before the first byte is read.",
    )
    def plan() -> PokeReturnValue:
        from kafka_archiver.steps import plan as step

        now = get_current_context()
        if others := runs_in_the_middle(now["ti"]):
            log.info("%d other run of this archive is at work: waiting until it has closed its hours", others)
            return PokeReturnValue(is_done=False)
        interval, origin = interval_of(archive, now["dag_run"]), origin_of(now["dag_run"])
        work = step.plan(_open(_with_params(archive, now["params"])), interval, origin, datetime.now(UTC))
        return PokeReturnValue(is_done=True, xcom_value=work.to_dict())

    @task(
        task_id="verify",
        # Nothing to read is no reason to leave the run uncommitted; a failure is.
        trigger_rule="none_failed",
        doc_md="Checks that the account covers every planned offset, and that every object is there as promised.",
    )
    def verify() -> None:
        from kafka_archiver.steps import verify as step

        step.verify(_open(archive), work_of(get_current_context()).runs)

    @task(task_id="commit", doc_md="Records that the run is final, then moves the consumer group.")
    def commit() -> None:
        from kafka_archiver.steps import commit as step

        step.commit(_open(archive), work_of(get_current_context()).runs, datetime.now(UTC))

    @task(
        task_id="close_hours",
        outlets=[hours_alias(archive)],
        doc_md="Proves the hours that the run touched, and announces each that is complete as an asset event.",
    )
    def close_hours() -> None:
        from kafka_archiver.steps import close_hours as step

        now = get_current_context()
        announce(archive, step.close_hours(_open(archive), work_of(now).runs), now["outlet_events"])

    archived = ArchiveOperator(
        task_id="archive",
        archive=archive,
        job=job,
        doc_md="Reads the planned offsets with Spark and writes the objects; skipped when there are none.",
    )
    return [plan(), archived, verify(), commit(), close_hours()]


def _open(archive: Archive) -> Any:
    from kafka_archiver.steps.context import Context

    return Context.open(archive, endpoints(archive))


def _default_args(archive: Archive) -> dict[str, Any]:
    return {
        "owner": archive.owner,
        "max_active_tis_per_dag": 1,
        "retries": archive.retries,
        # Half to one minute, then about three times as long: a broker or a store that restarts is back by then.
        "retry_delay": timedelta(seconds=20),
        "retry_exponential_backoff": 3,
        "max_retry_delay": timedelta(minutes=10),
        "retry_policy": ExceptionRetryPolicy(
            rules=[
                RetryRule(
                    exception=PermanentError,
                    action=RetryAction.FAIL,
                    reason="trying again would change nothing; see the error",
                )
            ]
        ),
        "on_failure_callback": [FailureAlert(archive)] if archive.alerts.on_failure else [],
    }


def _max_records(archive: Archive) -> Param:
    return Param(
        archive.source.max_records_per_run,
        type="integer",
        minimum=1,
        title="Records at most",
        description="How many records this run takes at most; the next run goes on where it stops. More than usual "
        "catches up faster after an outage. A backfill takes all of its interval.",
    )


def _with_params(archive: Archive, params: Mapping[str, Any]) -> Archive:
    source = archive.source.model_copy(update={"max_records_per_run": params["max_records"]})
    return archive.model_copy(update={"source": source})


def _tags(archive: Archive) -> list[str]:
    # A topic's name may be longer than a tag.
    topics = [topic[:100] for topic in archive.source.topics or ()]
    return list(dict.fromkeys(["archiver", *topics, *archive.tags]))


def _topics(archive: Archive) -> str:
    return ", ".join(archive.source.topics or ()) or f"topics matching {archive.source.pattern}"

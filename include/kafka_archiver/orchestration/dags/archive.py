"""One archive, one DAG: plan → archive → verify → commit → close_hours."""

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, ExceptionRetryPolicy, Param, RetryAction, RetryRule, chain
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import read_archive, read_archives
from kafka_archiver.messages.advice import dag_id
from kafka_archiver.messages.errors import ConfigError, PermanentError
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.alerts.cause import leave_cause
from kafka_archiver.orchestration.alerts.deadline import deadline
from kafka_archiver.orchestration.dag_run.form import params
from kafka_archiver.orchestration.dag_run.schedule import timetable
from kafka_archiver.orchestration.dags.docs import doc_md
from kafka_archiver.orchestration.dags.tasks import archive_tasks
from kafka_archiver.orchestration.folder import config_folder

log = logging.getLogger(__name__)
MAX_ACTIVE_RUNS = 16
# The documentation that these DAGs share.
TEXT = """\
Copies Kafka topics to an object store, filed by hour, so that the copy can be proved complete.

| Task | What it does |
|---|---|
| `plan` | freezes which offsets this run archives, before the first byte is read |
| `archive` | reads them with Spark and writes the objects and the manifest |
| `verify` | checks the account of every offset, and every object, against the store |
| `commit` | makes the run final, then moves the consumer group |
| `close_hours` | proves the hours that are complete now, and announces each as an asset event |

Every task may be cleared alone, at any time: the plan is never made anew, and the same plan gives the same bytes.
The next run finishes a failed interval. Two runs of one archive never work at the same time.
"""


def archive_dags(folder: Path | None = None, only: str | None = None) -> tuple[dict[str, DAG], list[ConfigError]]:
    """Make the DAGs of all archives, by DAG id, and return the errors of wrong YAML files.

    :param folder: of the YAML files; None: as `config_folder` has it.
    :param only: make only the DAG with this id, because Airflow is about to run one of its tasks.
    """
    dags, refusals, errors = dags_of_kind(folder, only, dag_id(""), archive_dag)
    refused = [f"archive {name}: Airflow cannot make a DAG of it: {error}" for name, error in refusals.items()]
    return dags, [*errors, *map(ConfigError, refused)]


def dags_of_kind(
    folder: Path | None, only: str | None, prefix: str, make: Callable[[Archive], DAG]
) -> tuple[dict[str, DAG], dict[str, Exception], list[ConfigError]]:
    """Make the DAGs of one kind that Airflow asks for, by DAG id: of all archives, or the one with the id `only`.

    :param prefix: what precedes an archive's name in the ids of these DAGs.
    :returns: also the archives of which Airflow cannot make one, with its error, and the errors of wrong YAML files.
    """
    archives, errors = dict[str, Archive](), list[ConfigError]()
    if only is None or only.startswith(prefix):
        folder = folder or config_folder()
        archives, _, errors = read_archive(folder, only.removeprefix(prefix)) if only else read_archives(folder)
    dags, refused = dict[str, DAG](), dict[str, Exception]()
    for name, archive in archives.items():
        try:
            dags[f"{prefix}{name}"] = make(archive)
        except (AirflowException, ValueError, TypeError) as error:
            refused[name] = error
    return dags, refused, errors


def dags_beside(
    folder: Path | None, only: str | None, prefix: str, make: Callable[[Archive], DAG], what: str
) -> dict[str, DAG]:
    """Make further DAGs of the archives, as `dags_of_kind`. `archive_dags` returns the errors of wrong YAML files.

    :param what: what these DAGs do, for the log.
    """
    dags, refused, _ = dags_of_kind(folder, only, prefix, make)
    for name, error in refused.items():
        # `archive_dags` returns the same error of the archive's own DAG.
        log.warning("archive %s: Airflow cannot make a DAG that %s it: %s", name, what, error)
    return dags


def archive_dag(archive: Archive) -> DAG:
    """Make the DAG of one archive."""
    alert = AlertCallbacks(archive) if archive.alerts.all else None
    with DAG(
        dag_id=dag_id(archive.archive),
        description=archive.description or f"Archives {_topics(archive)} to {archive.store.url}",
        doc_md=doc_md(archive, TEXT),
        schedule=timetable(archive),
        catchup=False,
        # Runs still work one at a time: `plan` waits for its turn. More than 1, because a run that was triggered with a
        # date in the future counts as running until then, and must not block the others.
        max_active_runs=MAX_ACTIVE_RUNS,
        tags=tags(archive),
        default_args=default_args(archive, alert),
        on_failure_callback=alert.run_failed if alert else None,
        deadline=deadline(archive),
        # The DAG file decides which DAGs it shows to Airflow.
        auto_register=False,
    ) as dag:
        chain(*archive_tasks(archive, alert))
    return with_params(dag, params(archive))


def with_params(dag: DAG, params: Mapping[str, Param]) -> DAG:
    """Give a DAG its parameters.

    Tasks that are made after them have copies of their own, and with 500 archives Airflow spends most of its time in
    checking and storing these. A task's context has the DAG's parameters anyway.
    """
    # Not `dag.params = …`, which checks each default by its schema: these are ours, and tests check them.
    object.__setattr__(dag, "params", ParamsDict(dict(params)))
    return dag


def default_args(archive: Archive, alert: AlertCallbacks | None) -> dict[str, Any]:
    """Return the default arguments of all tasks of an archive."""
    return {
        "owner": archive.owner,
        "max_active_tis_per_dag": 1,
        "retries": archive.retries,
        # 20 to 40 seconds, then three times as long each time: a service that restarts is back by then.
        "retry_delay": timedelta(seconds=20),
        "retry_exponential_backoff": 3,
        "max_retry_delay": timedelta(minutes=10),
        "retry_policy": ExceptionRetryPolicy(
            rules=[
                RetryRule(
                    exception=PermanentError,
                    action=RetryAction.FAIL,
                    reason="a retry would not help; see the error",
                )
            ]
        ),
        # The cause last: it must be the last line of the log.
        "on_failure_callback": [*([alert.task_failed] if alert else []), leave_cause],
        "on_retry_callback": [*([alert.task_retried] if alert else []), leave_cause],
    }


def tags(archive: Archive) -> list[str]:
    """Return the tags of an archive's DAGs."""
    # A topic's name may be longer than a tag.
    topics = [topic[:100] for topic in archive.source.topics or ()]
    return list(dict.fromkeys(["archiver", *topics, *archive.tags]))


def _topics(archive: Archive) -> str:
    return ", ".join(archive.source.topics or ()) or f"topics matching {archive.source.pattern}"

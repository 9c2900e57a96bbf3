"""Import what tasks and DAG files need once, in the scheduler and the DAG processor, which fork a process for each.

Each process then starts in a quarter of its CPU. With another executor than LocalExecutor, tasks are not forked from
the scheduler, and import for themselves. As after any upgrade, Airflow has to be restarted to run other code.
"""

import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)
# Neither numpy nor pyarrow, which start threads: a fork copies only the one that forks.
MODULES = (
    "airflow.dag_processing.dagbag",
    "kafka_archiver.orchestration.dags",
    "kafka_archiver.orchestration.dag_run.note",
    "kafka_archiver.work.backlog",
    "kafka_archiver.work.close_hours",
    "kafka_archiver.work.plan",
    "kafka_archiver.work.plan.idle_policies",
    "kafka_archiver.work.verify",
)


@hookimpl
def on_starting(component: Any) -> None:
    """Prepare a service of Airflow; a task's own process, which asks too, has inherited all."""
    job = sys.modules.get("airflow.jobs.job")
    if job is None or not isinstance(component, job.Job):
        return
    try:
        prepare()
    except Exception:
        log.warning("tasks of archives import their modules themselves, which takes longer", exc_info=True)


def prepare() -> None:
    """Import the modules, and make a DAG, an S3 client and the jobs' zip once: what these load and make is kept.

    DAG and client are thrown away. Sends no request.
    """
    for name in MODULES:
        import_module(name)
    import kafka_archiver
    from kafka_archiver.config import Archive
    from kafka_archiver.orchestration.dags.archive import archive_dag
    from kafka_archiver.orchestration.submit.package import package_of
    from kafka_archiver.store.s3_client import load_models

    section = {"source": {"topics": ["any"]}, "store": {"url": "s3://any/any"}}
    archive_dag(Archive.model_validate({"archive": "any", **section}))
    load_models()
    package_of(Path(kafka_archiver.__file__).parent)

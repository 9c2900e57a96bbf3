"""The DAG runs that restore an archive, from Airflow's metadata database."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from airflow.models import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XCOM_RETURN_KEY
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from kafka_archiver.orchestration.dag_run.xcoms import PLAN
from kafka_archiver.orchestration.metadata.database import xcoms
from kafka_archiver.orchestration.metadata.facts import progress_of
from kafka_archiver.state.status.facts import JobProgress

# Runs that are read.
LAST = 20


class RestoreRun(NamedTuple):
    """One DAG run. `restore`: its name in the ledger; empty until it is planned, unless somebody named it.

    `task`: the one that has failed, or is at work or next; None if all have ended well.
    """

    run_id: str
    state: str
    restore: str
    task: str | None
    begun: datetime | None
    ended: datetime | None
    progress: JobProgress | None = None


def restore_runs(dag: str) -> list[RestoreRun]:
    """Return the last runs of a DAG that restores, newest first; none if the database does not answer."""
    try:
        with create_session() as session:
            last = select(DagRun).where(DagRun.dag_id == dag).order_by(DagRun.id.desc()).limit(LAST)
            rows = list(session.scalars(last))
            ids = [row.run_id for row in rows]
            planned = xcoms(session, dag, ids, XCOM_RETURN_KEY, task=PLAN)
            names = {run_id: str(name) for (run_id, *_), name in planned.items()}
            tasks = list(
                session.scalars(select(TaskInstance).where(TaskInstance.dag_id == dag, TaskInstance.run_id.in_(ids)))
            )
            progress = progress_of(dag, [row.run_id for row in rows if row.state == "running"], session)
            return [
                RestoreRun(
                    row.run_id,
                    str(row.state),
                    names.get(row.run_id) or str((row.conf or {}).get("restore") or ""),
                    _task(task for task in tasks if task.run_id == row.run_id),
                    row.start_date,
                    row.end_date if row.state in ("success", "failed") else None,
                    progress.get(row.run_id),
                )
                for row in rows
            ]
    except SQLAlchemyError:
        return []


_ORDER = (PLAN, "restore", "verify", "translate_groups")
_DONE = ("success", "skipped", "removed")


def _task(tasks: Iterable[TaskInstance]) -> str | None:
    left = {task.task_id: task.state for task in tasks if task.state not in _DONE}
    failed = next((name for name in _ORDER if left.get(name) == "failed"), None)
    return failed or next((name for name in _ORDER if name in left), None)

"""What several commands ask of Airflow's metadata database."""

from typing import Any

from airflow.models.xcom import XComModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from kafka_archiver.orchestration.cause import CAUSE

# The states of DAG runs that have not ended, and of tasks that have.
UNFINISHED = ("queued", "running")
ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")


def causes(dag_id: str, run_id: str, session: Session) -> dict[str, dict[str, Any]]:
    """What the failed tasks of a DAG run have left, by task; see `orchestration.cause`."""
    left = select(XComModel).where(XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.key == CAUSE)
    return {x.task_id: XComModel.deserialize_value(x) for x in session.scalars(left)}

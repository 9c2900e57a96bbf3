"""Following one run of a DAG that Airflow's scheduler carries out."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from airflow.models import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_archiver.orchestration.metadata.patience import FOLLOWING_SECONDS, patiently
from kafka_archiver.orchestration.metadata.states import ENDED, UNFINISHED
from kafka_archiver.orchestration.metadata.why import obstacles, tell_why

_POLL_SECONDS = 3


class _Task(NamedTuple):
    name: str
    state: str
    start: datetime | None
    end: datetime | None

    def __str__(self) -> str:
        took = f"{(self.end - self.start).total_seconds():.0f} s" if self.start and self.end else ""
        return f"{self.name:<12}  {self.state:<15}  {took:>6}".rstrip()


def follow(dag_id: str, run_id: str, say: Callable[[str], None], pause: Callable[[float], None] = time.sleep) -> str:
    """Say how each task ends, until the run has; and why nothing moves, when nothing can. Returns the run's state."""
    said: set[str] = set()
    while True:
        state, tasks, blocks = patiently(lambda: _look(dag_id, run_id), FOLLOWING_SECONDS)
        # A task that is tried again has another line.
        for line in [*map(str, tasks), *(blocks if state in UNFINISHED else ())]:
            if line not in said:
                say(line)
                said.add(line)
        if state not in UNFINISHED:
            tell_why(dag_id, run_id, say)
            return state
        pause(_POLL_SECONDS)


def _look(dag_id: str, run_id: str) -> tuple[str, list[_Task], list[str]]:
    with create_session() as session:
        this = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        # First the state: what has ended by then is in the list.
        state = session.scalar(select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        ended = session.scalars(
            select(TaskInstance).where(*this, TaskInstance.state.in_(ENDED)).order_by(TaskInstance.end_date)
        )
        tasks = [_Task(ti.task_id, str(ti.state), ti.start_date, ti.end_date) for ti in ended]
        # A run that is gone has been deleted by hand.
        return str(state or "deleted"), tasks, obstacles(dag_id, session)

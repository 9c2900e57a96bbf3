"""Follow one DAG run until Airflow's scheduler has finished it."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from airflow.models import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

from kafka_archiver.orchestration.metadata.patience import FOLLOWING_SECONDS, retry_while_down
from kafka_archiver.orchestration.metadata.states import ENDED, UNFINISHED
from kafka_archiver.orchestration.metadata.why import obstacles, report_failures

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
    """Report each task that ends, and what keeps the run from going on. Returns the run's final state."""
    reported: set[str] = set()
    while True:
        state, tasks, blocks = retry_while_down(lambda: _look(dag_id, run_id), FOLLOWING_SECONDS)
        # A retried task ends again, with another line.
        for line in [*map(str, tasks), *(blocks if state in UNFINISHED else ())]:
            if line not in reported:
                say(line)
                reported.add(line)
        if state not in UNFINISHED:
            report_failures(dag_id, run_id, say)
            return state
        pause(_POLL_SECONDS)


def _look(dag_id: str, run_id: str) -> tuple[str, list[_Task], list[str]]:
    with create_session() as session:
        own = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        # The state first: if the run has ended, the list below has all of its tasks.
        state = session.scalar(select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        ended = session.scalars(
            select(TaskInstance).where(*own, TaskInstance.state.in_(ENDED)).order_by(TaskInstance.end_date)
        )
        tasks = [_Task(ti.task_id, str(ti.state), ti.start_date, ti.end_date) for ti in ended]
        # No row: somebody has deleted the run.
        return str(state or "deleted"), tasks, obstacles(dag_id, session)

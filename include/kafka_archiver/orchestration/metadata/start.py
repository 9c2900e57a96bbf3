"""Start a run of an archive's DAG from a command, follow it to its end, and report why it fails or does not go on."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from airflow.api.common.trigger_dag import trigger_dag
from airflow.jobs.job import most_recent_job
from airflow.models import DagModel, DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.platform import getuser
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select
from sqlalchemy.orm import Session

from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.advice import unpause
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.alerts.cause import CAUSE
from kafka_archiver.orchestration.metadata.database import (
    ENDED,
    FOLLOWING_SECONDS,
    UNFINISHED,
    retry_while_down,
    whole_transactions,
    xcoms,
)

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


def causes(dag_id: str, run_id: str, session: Session) -> dict[str, dict[str, Any]]:
    """Return the causes that the failed tasks of a DAG run have recorded, by task; see `alerts.cause`."""
    return {task: cause for (_, task, _), cause in xcoms(session, dag_id, [run_id], CAUSE).items()}


def report_failures(dag_id: str, run_id: str, say: Callable[[str], None]) -> None:
    """Report the cause and the log of each failed task."""
    for line in retry_while_down(lambda: _reasons(dag_id, run_id), FOLLOWING_SECONDS):
        say(line)


def _reasons(dag_id: str, run_id: str) -> list[str]:
    """Return two lines for each failed task: its cause, and its log's address."""
    with create_session() as session:
        left = {task: record["cause"] for task, record in causes(dag_id, run_id, session).items()}
        failed = select(TaskInstance).where(
            TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id, TaskInstance.state == "failed"
        )
        unknown = "no cause recorded (killed, its result not stored, or not a task of an archive)"
        return [
            line
            for ti in session.scalars(failed.order_by(TaskInstance.end_date))
            for line in (
                f"    {ti.task_id}: {left.get(ti.task_id, unknown)}",
                f"    log: {ti.log_url}",
            )
        ]


def obstacles(dag_id: str, session: Session) -> list[str]:
    """Return what keeps the runs of a DAG from going on."""
    model = session.get(DagModel, dag_id)
    scheduler = most_recent_job("SchedulerJob", session=session)
    lines = []
    if model is None or model.is_stale:
        lines.append(f"DAG {dag_id} is no longer in the DAG files: its runs do not go on.")
    elif model.is_paused:
        lines.append(
            f"DAG {dag_id} is paused: its queued runs do not start. To start them: `airflow dags unpause {dag_id}`."
        )
    if scheduler is None or not scheduler.is_alive():
        lines.append("No scheduler is alive, so no run goes on. Check that `airflow scheduler` runs.")
    return lines


def require_active(name: str) -> None:
    """Check that a run of the DAG would start.

    :raises ConfigError: Airflow has no such DAG, or it is paused.
    """
    with create_session() as session:
        if active_dag(name, session).is_paused:
            raise ConfigError(
                f"DAG {name} is paused, so its run would stay queued; nothing was changed.",
                *advise("Unpause it first, which starts its scheduled runs too: ", unpause(name)),
            )


def active_dag(name: str, session: Session) -> DagModel:
    """Return a DAG of Airflow, paused or not.

    :raises ConfigError: Airflow has no such DAG.
    """
    model = session.get(DagModel, name)
    if model is None or model.is_stale:
        raise ConfigError(
            f"Airflow has no DAG {name!r}.",
            *advise("See ", command("airflow dags list"), " and ", command("airflow dags list-import-errors"), "."),
        )
    return model


def run_to_success(name: str, conf: dict[str, Any], say: Callable[[str], None]) -> None:
    """Start a run and follow it, as `run_to_its_end`.

    :raises ConfigError: the run has not succeeded.
    """
    if (state := run_to_its_end(name, conf, say)) != "success":
        raise ConfigError(f"The run of {name} has ended: {state}. The log of the task that failed has the cause.")


def run_to_its_end(name: str, conf: dict[str, Any], say: Callable[[str], None]) -> str:
    """Start a run and report how each task and the run end. Returns the run's state.

    :raises SystemExit: Ctrl-C was pressed; the run goes on.
    """
    with whole_transactions():
        run = trigger_dag(
            dag_id=name, triggered_by=DagRunTriggeredByType.CLI, triggering_user_name=getuser(), conf=conf
        )
    run_id = str(run.run_id) if run else ""
    say(f"Started run {run_id} of {name}.")
    try:
        state = follow(name, run_id, say)
    except KeyboardInterrupt:
        say(f"\nNo longer waiting; run {run_id} of {name} goes on.")
        raise SystemExit(130) from None
    say(f"Run {run_id} of {name} has ended: {state}.")
    return state

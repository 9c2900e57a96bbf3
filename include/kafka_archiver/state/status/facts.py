"""Airflow's knowledge of an archive, as values. Callers with access to Airflow make them."""

import re
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Literal

from kafka_archiver.messages.actions import Action
from kafka_archiver.values.documents import UtcTime, Value

# The tasks of a DAG run, in their order.
TASKS = ("plan", "archive", "verify", "commit", "close_hours")


def task_order(task: str) -> int:
    """Return the place of a task in the order of a DAG run; other tasks come last."""
    return TASKS.index(task) if task in TASKS else len(TASKS)


class TaskFailure(Value):
    """The last failed attempt of a task. `permanent`: there is no retry, because it would not help.

    `cause`: None if the process ended without reporting an error; then `permanent` is unknown. `actions`, `kinds`:
    those of the error; none if an earlier release left the cause.
    """

    task: str
    attempts: int
    permanent: bool = False
    cause: str | None = None
    actions: tuple[Action, ...] = ()
    kinds: tuple[str, ...] = ()


class Effort(Value):
    """The effort of an ended run. `retries`: attempts after the first, of all its tasks.

    `cpu_seconds`: of spark-submit and its children, which is all of Spark only on one machine; None: not known.
    """

    retries: int
    cpu_seconds: float | None


class Written(Value):
    """The records that an ended run archived, in all the ledger's runs that it finished."""

    runs: int
    records: int
    bytes: int


class JobProgress(Value):
    """The last line about the progress of a job that is at work. `run`: what it works on, a run or a restore."""

    run: str
    text: str
    at: UtcTime

    @property
    def percent(self) -> int | None:
        """The share that is done; None if the line has none."""
        share = re.search(r"\((\d{1,3}) %\)", self.text)
        return min(int(share[1]), 100) if share else None


class DagRun(Value):
    """One run of the archive's DAG. `state`: failed as soon as one of its tasks is; Airflow ends the run later.

    `date`: no task starts before it. `due`: the end of the run's interval, or the time of a manual trigger.
    `forward`: it archives new offsets: not a backfill, a rebuild or a repair, nor a run with an unknown parameter.
    `queued`: when Airflow queued it; a backfill's run is due long before.
    `task`, `task_state`: the first task that has not ended. `failure`: of the task that failed or is retried.
    `works`: the ledger's runs that it was to finish, read only of a run with a failure; `finished`: those that it has
    finished. `replays`: they were final before, and it only archives them again. `note`: the run's note in Airflow.
    `effort`, `wrote`: of an ended run. `progress`: of the job of a run at work.
    """

    run_id: str
    state: Literal["queued", "running", "success", "failed"]
    forward: bool
    date: UtcTime
    due: UtcTime
    queued: UtcTime | None = None
    begun: UtcTime | None = None
    ended: UtcTime | None = None
    task: str | None = None
    task_state: str | None = None
    failure: TaskFailure | None = None
    works: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    replays: bool = False
    effort: Effort | None = None
    wrote: Written | None = None
    progress: JobProgress | None = None
    note: str | None = None

    @property
    def is_asked_for(self) -> bool:
        """True if the archive goes on without it: a backfill, a rebuild, a replay or a repair."""
        return not self.forward or self.replays

    @property
    def is_of_schedule(self) -> bool:
        """True if the schedule made it. A backfill that runs it again makes it a backfill's, and keeps its name."""
        return self.run_id.startswith("scheduled__")

    def has_passed(self, task: str) -> bool:
        """Return True if the run is at work, and a later task is next."""
        return self.state == "running" and (self.task is None or task_order(self.task) > task_order(task))


class Facts(Value):
    """Airflow's knowledge. `silent`: why Airflow does not answer; then the other fields mean nothing.

    `runs`: the last runs and all unfinished ones. `scheduler`: one is alive. `api`: the address of Airflow's API;
    `needs_no_login`: it gives a token to everybody.
    `audit_paused`: the DAG that audits is paused.
    `due`: the end of the schedule's last complete interval but one, whose run has had one interval's time; None: by
    hand. `next_due`: when the scheduler will create the next run.
    """

    dag_id: str
    silent: str | None = None
    known: bool = True
    paused: bool = False
    audit_paused: bool = False
    scheduler: bool = True
    api: str = ""
    needs_no_login: bool = False
    due: UtcTime | None = None
    interval: timedelta | None = None
    next_due: UtcTime | None = None
    runs: tuple[DagRun, ...] = ()

    def future_runs(self, moment: datetime) -> list[DagRun]:
        """Return queued and running runs with a date in the future."""
        return [run for run in self.runs if run.state in ("queued", "running") and run.date > moment]

    def at_work(self, moment: datetime) -> list[DagRun]:
        """Return queued and running runs whose tasks may start."""
        return [run for run in self.runs if run.state in ("queued", "running") and run.date <= moment]

    @property
    def ended(self) -> list[DagRun]:
        """Ended runs, the last one first."""
        runs = [run for run in self.runs if run.state in ("success", "failed") and run.ended]
        return sorted(runs, key=lambda run: run.ended or run.due, reverse=True)

    @property
    def failing(self) -> list[DagRun]:
        """The forward runs, without replays, that failed since the last one that succeeded, newest first.

        The success of a backfill, rebuild or repair does not show that forward runs work.
        """
        return list(takewhile(_has_failed, (run for run in self.ended if not run.is_asked_for)))

    @property
    def failed_requests(self) -> list[DagRun]:
        """The backfills, rebuilds, replays and repairs that failed since the last one that succeeded, newest first."""
        return list(takewhile(_has_failed, (run for run in self.ended if run.is_asked_for)))

    @property
    def usual_duration(self) -> timedelta | None:
        """The median duration of the successful runs."""
        times = [run.ended - run.begun for run in self.ended if run.state == "success" and run.begun and run.ended]
        return sorted(times)[len(times) // 2] if times else None


def _has_failed(run: DagRun) -> bool:
    return run.state == "failed"

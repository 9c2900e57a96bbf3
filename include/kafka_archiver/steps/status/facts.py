"""What Airflow knows of an archive, as values: whoever may ask Airflow hands them in."""

from datetime import datetime, timedelta
from itertools import takewhile
from typing import Literal

from kafka_archiver.documents import UtcTime, Value


class Failure(Value):
    """A task's last attempt that failed. `permanent`: nothing tries it again, for that would change nothing.

    `cause`: None where the process ended without a word; then nobody knows whether it is permanent.
    """

    task: str
    attempts: int
    permanent: bool = False
    cause: str | None = None


class DagRun(Value):
    """One run of the archive's DAG.

    `date`: before it no task starts. `due`: what the run is about ends here, or when somebody started it.
    `forward`: it takes what is new, and is neither a backfill nor a rebuild nor a repair.
    `task`, `task_state`: the first one that has not ended. `failure`: of the task that failed, or is tried again.
    """

    run_id: str
    state: Literal["queued", "running", "success", "failed"]
    forward: bool
    date: UtcTime
    due: UtcTime
    begun: UtcTime | None = None
    ended: UtcTime | None = None
    task: str | None = None
    task_state: str | None = None
    failure: Failure | None = None


class Facts(Value):
    """What Airflow says. `silent`: why it says nothing; then the rest means nothing.

    `runs`: the last ones and all that have not ended. `scheduler`: one is alive. `api`: where Airflow's own API is.
    `due`: the schedule's last complete interval but one ends here, so its run had an interval's time; None: by hand.
    `next_due`: when the scheduler means to make the next run.
    """

    dag_id: str
    silent: str | None = None
    known: bool = True
    paused: bool = False
    scheduler: bool = True
    api: str = ""
    due: UtcTime | None = None
    interval: timedelta | None = None
    next_due: UtcTime | None = None
    runs: tuple[DagRun, ...] = ()

    def to_come(self, now: datetime) -> list[DagRun]:
        """Runs that Airflow has begun and whose date is in the future."""
        return [run for run in self.runs if run.state in ("queued", "running") and run.date > now]

    def at_work(self, now: datetime) -> list[DagRun]:
        """Runs that have not ended, and could."""
        return [run for run in self.runs if run.state in ("queued", "running") and run.date <= now]

    @property
    def ended(self) -> list[DagRun]:
        """Runs that have ended, the last one first."""
        found = [run for run in self.runs if run.state in ("success", "failed") and run.ended]
        return sorted(found, key=lambda run: run.ended or run.due, reverse=True)

    @property
    def failing(self) -> list[DagRun]:
        """The runs that failed since one succeeded, the last one first: of those that take what is new, else of all.

        What takes nothing new cures nothing that stops those.
        """
        forward = list(takewhile(_has_failed, (run for run in self.ended if run.forward)))
        return forward or list(takewhile(_has_failed, self.ended))

    @property
    def usual(self) -> timedelta | None:
        """How long a run takes: what half of those that have succeeded took at most."""
        times = [run.ended - run.begun for run in self.ended if run.state == "success" and run.begun and run.ended]
        return sorted(times)[len(times) // 2] if times else None


def _has_failed(run: DagRun) -> bool:
    return run.state == "failed"

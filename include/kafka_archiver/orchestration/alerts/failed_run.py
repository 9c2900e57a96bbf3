"""The alert about a failed task. Pure, except that it reads the plan and the progress from the ledger."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.actions import Action, command, words
from kafka_archiver.messages.advice import next_steps, start_again
from kafka_archiver.messages.errors import ArchiverError, PermanentError, shape
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.plan import Plan
from kafka_archiver.orchestration.alerts.cause import actions_of, cause_of, cut_cause, reason_of
from kafka_archiver.orchestration.alerts.message import Kind, Message, State
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dag_run.params import takes_new
from kafka_archiver.orchestration.dag_run.schedule import interval_of
from kafka_archiver.orchestration.dag_run.xcoms import PLAN
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.intervals import Interval
from kafka_archiver.work.backlog import unsettled_runs
from kafka_archiver.work.planned_work import PlannedWork, describe_plan

log = logging.getLogger(__name__)
LEDGER_SECONDS = 10.0
# Characters of a cause in the subject.
SUBJECT = 120
# Characters of a cause that tell it from another.
KEY = 200
# The plan, and until when hours are closed.
_Read: TypeAlias = tuple[Plan | None, datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTask:
    """A failed task.

    `run`: the ledger's run that the task worked on, which may be earlier than the DAG run's own; None before there is a
    plan, and for an audit. `interval` and `planned`: the interval and the offset ranges of that run; before there is a
    plan, the DAG run's own interval. `reason`: the cause without what to do. `permanent`: a retry does not help.
    `actions`: those that the error names.
    `closed_until`: hours are closed until then; None if unknown.
    """

    archive: str
    dag_id: str
    run_id: str
    task: str
    attempt: int
    attempts: int
    run: str | None
    interval: Interval | None
    planned: str | None
    cause: str
    reason: str
    permanent: bool
    actions: tuple[Action, ...]
    closed_until: datetime | None
    log_url: str

    @property
    def key(self) -> str:
        """The key of its incident: the same for runs that fail for one reason."""
        return f"{self.task}: {shape(self.cause)[:KEY]}"

    def message(self, kind: Kind, state: State) -> Message:
        unknown = "unknown, because the ledger has no such plan or cannot be read"
        planned = (
            "Nothing is planned yet" if self.task == PLAN and not self.run else f"Planned: {self.planned or unknown}"
        )
        again = "another cause" if state == "changes" else ""
        return Message(
            kind=kind,
            state=state,
            archive=self.archive,
            title=self._title + (f", now for {again}" if again else "") + f": {foreign(self.reason, SUBJECT)}",
            cause=self.reason,
            bad=(
                *([f"Run {self.run} of the ledger"] if self.run else []),
                *([planned] if self.interval or self.run else []),
                *([f"Hours are closed until {isoformat(self.closed_until)}"] if self.closed_until else []),
                self._tries(kind),
                f"DAG {self.dag_id}, DAG run {self.run_id}",
            ),
            do=self._next(kind),
            link=self.log_url,
            fields=self._fields(),
        )

    def _tries(self, kind: Kind) -> str:
        if kind == "retry":
            return f"Attempt {self.attempt} of {self.attempts} failed; Airflow tries it again"
        if self.permanent:
            return "Not tried again: it would fail the same way"
        return f"Failed {self.attempt} of {self.attempts} times" if self.attempts > 1 else "It is tried only once"

    @property
    def _title(self) -> str:
        failed = f"Archive {self.archive}: task {self.task} failed"
        if self.interval is None:
            return failed
        return f"{failed}, interval {self.interval.start:%Y-%m-%d %H:%M} to {self.interval.end:%Y-%m-%d %H:%M} UTC"

    def _next(self, kind: Kind) -> tuple[Action, ...]:
        if kind == "retry":
            return (words("nothing, unless all attempts fail"),)
        trigger = start_again(self.dag_id)
        if kind == "asked":
            return self._after_correction(words("start it again with the same command or form"))
        if kind == "backfill":
            start = f" -s {self.interval.start:%Y-%m-%dT%H:%M}" if self.interval else " -s START"
            return self._after_correction(command(f"airflow dags backfill {self.dag_id}{start} --rerun-failed-tasks"))
        if self.permanent:
            return self._after_correction(trigger)
        passes = "nothing if the cause passes: the next run goes on where this one stopped. To go on now"
        return (trigger.after(passes),)

    def _after_correction(self, step: Action) -> tuple[Action, ...]:
        """Return the actions that correct the cause, then this step, unless one of them takes it."""
        first = "correct the cause, then"
        otherwise = step.after(first) if step.command else words(f"{first}: {step.words}")
        return next_steps(self.actions, step, otherwise)

    def _fields(self) -> dict[str, Any]:
        plain = ("dag_id", "run_id", "task", "attempt", "attempts", "run", "planned", "permanent")
        start, end = (self.interval.start, self.interval.end) if self.interval else (None, None)
        times = {"interval_start": start, "interval_end": end, "closed_until": self.closed_until}
        return {name: getattr(self, name) for name in plain} | {n: at and isoformat(at) for n, at in times.items()}


def failed(archive: Archive, context: Mapping[str, Any], archives: bool = True) -> FailedTask:
    """Return the failed task in the context of Airflow's callback.

    :param archives: whether the task is of the DAG that archives; an audit has no interval.
    """
    ti, dag_run = context["ti"], context["dag_run"]
    planned = _runs(ti) if archives else ()
    own = interval_of(archive, dag_run) if archives and takes_new(dag_run.conf) else None
    runs = planned or ((own.id,) if own else ())
    plan, until = _ledger(archive, runs, ti.task_id == PLAN) if runs else (None, None)
    error = context.get("exception")
    return FailedTask(
        archive=archive.archive,
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task=ti.task_id,
        attempt=ti.try_number,
        attempts=ti.max_tries + 1,
        run=plan.run if plan else planned[0] if len(planned) == 1 else None,
        interval=plan.interval if plan else own if own and runs == (own.id,) else None,
        planned=describe_plan(plan) if plan else None,
        cause=cut_cause(cause_of(error)),
        reason=cut_cause(reason_of(error)),
        permanent=isinstance(error, PermanentError),
        actions=actions_of(error),
        closed_until=until,
        log_url=ti.log_url,
    )


def _runs(ti: Any) -> tuple[str, ...]:
    """Return the ledger's runs that the task `plan` of this DAG run returned; none before `plan` has succeeded."""
    work = ti.xcom_pull(task_ids=PLAN, key="return_value", map_indexes=-1)
    return PlannedWork.from_dict(work).runs if work else ()


def _ledger(archive: Archive, runs: Sequence[str], planning: bool) -> _Read:
    """Return the plan of the first unsettled run, which is the run at work, and until when hours are closed.

    :param planning: the task `plan` failed, so that a settled run of the same interval is another DAG run's.
    """
    try:
        addresses = endpoints(archive)
    except ArchiverError:
        return None, None
    answer: list[_Read] = []
    # In a thread with a time limit: if the store is what failed, its client retries for minutes.
    reader = threading.Thread(target=lambda: answer.append(_read(archive, addresses, runs, planning)), daemon=True)
    reader.start()
    reader.join(LEDGER_SECONDS)
    return answer[0] if answer else (None, None)


def _read(archive: Archive, addresses: Endpoints, runs: Sequence[str], planning: bool) -> _Read:
    try:
        context = Context.open(archive, addresses)
        plan = context.ledger.plan(unsettled_runs(context, runs)[0])
        progress = context.ledger.progress()
        if planning and plan and progress and plan.number <= progress.settled:
            plan = None
    except ArchiverError as error:
        log.warning("the alert has no planned offsets: %s", error)
        return None, None
    return plan, progress.closed_until if progress else None

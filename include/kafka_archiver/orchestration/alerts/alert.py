"""The alert about a task that has failed for good. Pure, except that it reads the plan from the ledger."""

import html
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ArchiverError
from kafka_archiver.intervals import Interval
from kafka_archiver.job import Endpoints
from kafka_archiver.orchestration.alerts.cause import cause_of, shortened
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dag_run.gate import PLAN
from kafka_archiver.orchestration.dag_run.params import takes_new
from kafka_archiver.orchestration.dag_run.schedule import interval_of
from kafka_archiver.plan import Plan
from kafka_archiver.steps.backlog import still_open
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.work import Work, describe

log = logging.getLogger(__name__)
LEDGER_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A failed task.

    `run`: the ledger's run that the task worked on, which may be earlier than the DAG run's own; None before there is a
    plan, and for an audit. `interval` and `planned`: the interval and the offset ranges of that run.
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
    log_url: str

    @property
    def title(self) -> str:
        """One line."""
        failed = f"Archive {self.archive}: task {self.task} failed"
        if self.interval is None:
            return failed
        return f"{failed}, interval {self.interval.start:%Y-%m-%d %H:%M} to {self.interval.end:%Y-%m-%d %H:%M} UTC"

    @property
    def lines(self) -> list[str]:
        """The text below the title."""
        run = [f"Run {self.run} of the ledger"] if self.run else []
        unknown = "unknown (no plan yet, or the ledger cannot be read)"
        planned = [f"Planned: {self.planned or unknown}"] if self.interval or self.run else []
        return [
            self.cause,
            *run,
            *planned,
            f"Attempt {self.attempt} of {self.attempts}; Airflow will not retry.",
            f"DAG {self.dag_id}, DAG run {self.run_id}",
            f"Log: {self.log_url}",
        ]

    def document(self) -> dict[str, Any]:
        """The alert as JSON; chat services show the `text` of a webhook's document."""
        fields = {name: value for name, value in asdict(self).items() if name != "interval"}
        fields["interval_start"] = isoformat(self.interval.start) if self.interval else None
        fields["interval_end"] = isoformat(self.interval.end) if self.interval else None
        return {"text": "\n".join([self.title, *self.lines]), **fields}

    def as_html(self) -> str:
        """The alert as the body of an email."""
        return "".join(f"<p>{html.escape(line)}</p>" for line in [self.title, *self.lines])


def alert_of(archive: Archive, context: Mapping[str, Any], archives: bool = True) -> Alert:
    """The alert of a failed task, from the context of Airflow's failure callback.

    :param archives: whether the task is of the DAG that archives; an audit has no interval.
    """
    ti, dag_run = context["ti"], context["dag_run"]
    planned = _runs(ti) if archives else ()
    own = interval_of(archive, dag_run) if archives and takes_new(dag_run.conf) else None
    runs = planned or ((own.id,) if own else ())
    plan = _plan(archive, runs) if runs else None
    return Alert(
        archive=archive.archive,
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task=ti.task_id,
        attempt=ti.try_number,
        attempts=ti.max_tries + 1,
        run=plan.run if plan else planned[0] if len(planned) == 1 else None,
        interval=plan.interval if plan else own if own and runs == (own.id,) else None,
        planned=describe(plan) if plan else None,
        cause=shortened(cause_of(context.get("exception"))),
        log_url=ti.log_url,
    )


def _runs(ti: Any) -> tuple[str, ...]:
    """The ledger's runs that the task `plan` of this DAG run returned; none before `plan` has succeeded."""
    found = ti.xcom_pull(task_ids=PLAN, key="return_value", map_indexes=-1)
    return Work.from_dict(found).runs if found else ()


def _plan(archive: Archive, runs: Sequence[str]) -> Plan | None:
    """The plan of the first unsettled run, which is the run at work."""
    try:
        found = endpoints(archive)
    except ArchiverError:
        return None
    answer: list[Plan | None] = []
    # In a thread with a time limit: if the store is what failed, its client retries for minutes.
    reader = threading.Thread(target=lambda: answer.append(_read_plan(archive, found, runs)), daemon=True)
    reader.start()
    reader.join(LEDGER_SECONDS)
    return answer[0] if answer else None


def _read_plan(archive: Archive, found: Endpoints, runs: Sequence[str]) -> Plan | None:
    try:
        context = Context.open(archive, found)
        return context.ledger.plan(still_open(context, runs)[0])
    except ArchiverError as error:
        log.warning("the alert has no planned offsets: %s", error)
        return None

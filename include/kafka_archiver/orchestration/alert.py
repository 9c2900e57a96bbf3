"""What to say when a task has failed for good. Pure, but for asking the ledger what was planned."""

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
from kafka_archiver.orchestration.cause import cause_of, shortened
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.gate import PLAN
from kafka_archiver.orchestration.params import takes_new
from kafka_archiver.orchestration.schedule import interval_of
from kafka_archiver.plan import Plan
from kafka_archiver.steps.backlog import still_open
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import Work, describe

log = logging.getLogger(__name__)
LEDGER_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A failed task.

    `run`: the ledger's run that it worked on, which may be an earlier one than the DAG run's own; None before there is
    a plan, and of an audit. `interval`: that run's. `planned`: its offset ranges.
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
        """The rest, for a person."""
        run = [f"Run {self.run} of the ledger"] if self.run else []
        unknown = "unknown (no plan yet, or the ledger cannot be read)"
        planned = [f"Planned: {self.planned or unknown}"] if self.interval or self.run else []
        return [
            self.cause,
            *run,
            *planned,
            f"Attempt {self.attempt} of {self.attempts}; no other follows.",
            f"DAG {self.dag_id}, DAG run {self.run_id}",
            f"Log: {self.log_url}",
        ]

    def document(self) -> dict[str, Any]:
        """For a program; `text` is what chat services show of a webhook's document."""
        fields = {name: value for name, value in asdict(self).items() if name != "interval"}
        fields["interval_start"] = isoformat(self.interval.start) if self.interval else None
        fields["interval_end"] = isoformat(self.interval.end) if self.interval else None
        return {"text": "\n".join([self.title, *self.lines]), **fields}

    def as_html(self) -> str:
        """For a mail."""
        return "".join(f"<p>{html.escape(line)}</p>" for line in [self.title, *self.lines])


def alert_of(archive: Archive, context: Mapping[str, Any], archives: bool = True) -> Alert:
    """The alert of a failed task, from Airflow's context of its failure callback.

    :param archives: whether it is a task of the DAG that archives; one that audits is about no interval.
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
    """The ledger's runs that `plan` of this DAG run has found; none before it has."""
    found = ti.xcom_pull(task_ids=PLAN, key="return_value", map_indexes=-1)
    return Work.from_dict(found).runs if found else ()


def _plan(archive: Archive, runs: Sequence[str]) -> Plan | None:
    """The plan of the first of these runs that is not settled, which is the one at work."""
    try:
        found = endpoints(archive)
    except ArchiverError:
        return None
    answer: list[Plan | None] = []
    # The store may be what failed, and it is asked again and again for minutes: the alert does not wait for that.
    reader = threading.Thread(target=lambda: answer.append(_read_plan(archive, found, runs)), daemon=True)
    reader.start()
    reader.join(LEDGER_SECONDS)
    return answer[0] if answer else None


def _read_plan(archive: Archive, found: Endpoints, runs: Sequence[str]) -> Plan | None:
    try:
        context = Context.open(archive, found)
        return context.ledger.plan(still_open(context, runs)[0])
    except ArchiverError as error:
        log.warning("the alert goes without the planned offsets: %s", error)
        return None

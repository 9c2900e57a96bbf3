"""What to say when a task has failed for good. Pure, but for asking the ledger what was planned."""

import html
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from airflow.sdk.log import redact  # type: ignore[attr-defined] # where providers import it from

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ArchiverError, PermanentError, TransientError
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.schedule import interval_of
from kafka_archiver.steps.context import Context, Endpoints
from kafka_archiver.steps.plan import describe

log = logging.getLogger(__name__)
LEDGER_SECONDS = 15.0
# Airflow gives none when it only knows that the task's process stopped reporting.
_NO_EXCEPTION = "the task's process ended without a word (killed, out of memory, or its machine is gone)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A failed task. `planned`: the offset ranges of its interval, when there is a plan."""

    archive: str
    dag_id: str
    run_id: str
    task: str
    attempt: int
    attempts: int
    interval_start: datetime
    interval_end: datetime
    planned: str | None
    cause: str
    log_url: str

    @property
    def title(self) -> str:
        """One line."""
        return (
            f"Archive {self.archive}: task {self.task} failed, interval "
            f"{self.interval_start:%Y-%m-%d %H:%M} to {self.interval_end:%Y-%m-%d %H:%M} UTC"
        )

    @property
    def lines(self) -> list[str]:
        """The rest, for a person."""
        return [
            self.cause,
            f"Planned: {self.planned or 'unknown (no plan yet, or the ledger cannot be read)'}",
            f"Attempt {self.attempt} of {self.attempts}; no other follows.",
            f"DAG {self.dag_id}, run {self.run_id}",
            f"Log: {self.log_url}",
        ]

    def document(self) -> dict[str, Any]:
        """For a program; `text` is what chat services show of a webhook's document."""
        times = {name: isoformat(getattr(self, name)) for name in ("interval_start", "interval_end")}
        return {"text": "\n".join([self.title, *self.lines]), **asdict(self), **times}

    def as_html(self) -> str:
        """For a mail."""
        return "".join(f"<p>{html.escape(line)}</p>" for line in [self.title, *self.lines])


def alert_of(archive: Archive, context: Mapping[str, Any]) -> Alert:
    """The alert of a failed task, from Airflow's context of its failure callback."""
    ti = context["ti"]
    interval = interval_of(archive, context["dag_run"])
    return Alert(
        archive=archive.archive,
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task=ti.task_id,
        attempt=ti.try_number,
        attempts=ti.max_tries + 1,
        interval_start=interval.start,
        interval_end=interval.end,
        planned=_planned(archive, interval.id),
        cause=str(redact(_cause(context.get("exception")))),
        log_url=ti.log_url,
    )


def _cause(error: object) -> str:
    if not isinstance(error, BaseException):
        return " ".join(str(error or _NO_EXCEPTION).split())
    # These two carry the name of what happened in the job; the others are named by their class.
    name = "" if type(error) in (PermanentError, TransientError) else f"{type(error).__name__}: "
    text = " ".join(f"{name}{error}".split())
    return text if len(text) <= 1000 else text[:1000] + " …"


def _planned(archive: Archive, run: str) -> str | None:
    try:
        found = endpoints(archive)
    except ArchiverError:
        return None
    answer: list[str | None] = []
    # The store may be what failed, and it is asked again and again for minutes: the alert does not wait for that.
    reader = threading.Thread(target=lambda: answer.append(_read_plan(archive, found, run)), daemon=True)
    reader.start()
    reader.join(LEDGER_SECONDS)
    return answer[0] if answer else None


def _read_plan(archive: Archive, found: Endpoints, run: str) -> str | None:
    try:
        plan = Context.open(archive, found).ledger.plan(run)
    except ArchiverError as error:
        log.warning("the alert goes without the planned offsets: %s", error)
        return None
    return None if plan is None else describe(plan)

"""The note of a DAG run: one line about its work, or why it failed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafka_archiver.messages.foreign_text import without_markup
from kafka_archiver.messages.wording import count, size
from kafka_archiver.orchestration.dag_run.figures import Figures

# Characters; Airflow's limit is 1000.
LONGEST = 400
# Begins the note of a failed run whose work another run has done; the second as earlier releases wrote it.
SETTLED = ("done later by run ", "settled by run ")

# Of a run that failed although none of its tasks did.
NOT_RUN_AGAIN = "no task failed, but tasks behind a cleared one did not run again: clear them, too, or start a run"


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed DAG run. `works`: the ledger's runs that it was to finish; none if its task `plan` failed.

    `end`: the end of its interval, None for a run without one. `forward`: it archives new offsets.
    """

    forward: bool
    end: datetime | None
    works: tuple[str, ...]


def failed(task: str, cause: str) -> str:
    """Return the note of a run that failed in a task. Airflow shows notes as Markdown."""
    return _cut(f"{task} failed: {without_markup(cause)}")


def succeeded(run: Figures) -> str:
    """Return the note of a run that succeeded, and the last line of its log."""
    objects = f" in {count(run.objects, 'object')} ({size(run.bytes)})" if run.objects else ""
    counts = ((run.filtered, "filtered"), (run.dead_letters, "dead-lettered"), (run.lost, "lost"))
    more = "".join(f", {number:,} {name}" for number, name in counts if number)
    more += f", {count(run.unnamed, 'record')} without properties that the schema does not name" if run.unnamed else ""
    more += f", {count(run.mended, 'object')} repaired" if run.mended else ""
    until = f"hours are closed until {run.closed_until:%Y-%m-%d %H:%M} UTC" if run.closed_until else ""
    closed = f"{count(run.hours_closed, 'hour')} became complete" if run.hours_closed else ""
    ends = ", ".join(filter(None, (closed, until))) or "no hour is closed yet"
    return f"{count(run.records, 'record')}{objects}{more}; {ends}"


def audited(audit: Mapping[str, Any]) -> str:
    """Return the note of an audit that found no damage, from the figures in its XCom."""
    return _cut(f"{audit['verdict']}: {audit['objects']:,} objects of {audit['runs']:,} runs; report {audit['report']}")


def settles(figures: Mapping[str, Any], by: bool, run: FailedRun) -> bool:
    """Return True if the run with these figures has settled everything that an earlier run failed to do.

    :param by: whether that run archives new offsets.
    """
    works = set(run.works)
    if works:
        return works <= set(figures["runs"]) or (run.forward and by and not works & set(figures["unfinished"]))
    # An older version of the task left no `as_of`.
    until = figures.get("as_of") or figures["closed_until"]
    return bool(run.forward and by and run.end and until and datetime.fromisoformat(until) >= run.end)


def settled(note: str | None, by: str) -> str:
    """Return the note of a failed run that another run has settled. A note that says so already stays."""
    if note and note.startswith(SETTLED):
        return note
    return _cut(f"{SETTLED[0]}{by}{f'; it had failed: {note}' if note else ''}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 2] + " …"

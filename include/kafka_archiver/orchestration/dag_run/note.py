"""The note of a DAG run: one line about its work, or why it failed. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafka_archiver.messages.foreign_text import without_markup

# The XCom of `close_hours` with the figures of the run (kafka_archiver.orchestration.dag_run.figures.Figures).
FIGURES = "figures"
# The XCom of the task `archive` with the CPU seconds of its last attempt.
ARCHIVE, CPU = "archive", "cpu_seconds"
# The XCom of a task at work: the last line about its job's progress (kafka_archiver.messages.progress), and its time.
PROGRESS = "progress"
# The XCom of `close_hours` with the number of errors in the last audit's report, if the run has taken some out of it.
DAMAGE_LEFT = "damage_left"
# The XCom of `audit` with its verdict and counts, also of a failed task.
AUDITED = "audit"
# Characters; Airflow's limit is 1000.
LONGEST = 400
SETTLED = "settled by run "


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed DAG run. `works`: the ledger's runs that it was to finish; none if its task `plan` failed.

    `end`: the end of its interval, None for a run without one. `forward`: it archives new offsets.
    """

    run_id: str
    forward: bool
    end: datetime | None
    works: tuple[str, ...]


def failed(task: str, cause: str) -> str:
    """Return the note of a run that failed in a task. Airflow shows notes as Markdown."""
    return _cut(f"{task} failed: {without_markup(cause)}")


def audited(audit: Mapping[str, Any]) -> str:
    """Return the note of an audit that found no damage, from the figures in its XCom."""
    return _cut(f"{audit['verdict']}: {audit['objects']:,} objects of {audit['runs']:,} runs; report {audit['report']}")


def settles(figures: Mapping[str, Any], by: bool, run: FailedRun) -> bool:
    """Return whether the run with these figures has settled everything that an earlier run failed to do.

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
    return _cut(f"{SETTLED}{by}{f'; {note}' if note else ''}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 2] + " …"

"""The alerts about the state of an archive, from figures, and those of the watchdog. Pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from kafka_archiver.messages.actions import Action, command, words
from kafka_archiver.messages.advice import audit_dag_id, dag_id, examine, last_hours, show, status
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.findings import Finding
from kafka_archiver.orchestration.alerts.message import Kind, Message, State, of_incident
from kafka_archiver.orchestration.alerts.reporting import Incident, MessageOf
from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.values.documents import isoformat

# Characters of an error in the subject.
SUBJECT = 120
_FOLDERS = re.compile(r"\S*/(?=[^/\s]+\.ya?ml\b)")
HOUR = timedelta(hours=1)


def works_again(archive: str, kind: Kind, before: Incident, done: str, link: str, run_id: str) -> Message:
    """Report that runs succeed again.

    :param done: what the successful run did, in one line.
    """
    failed = f"Failed since {before.since}, last because of: {before.cause}"
    what = {"backfill": "backfills succeed again", "check": "its audit runs again"}.get(kind, "runs succeed again")
    return Message(
        kind=kind,
        state="over",
        archive=archive,
        title=f"Archive {archive}: {what}",
        bad=tuple(filter(None, (done and f"Run {run_id}: {done}", failed))),
        link=link,
        fields={"run_id": run_id, "since": before.since},
    )


def lag(archive: str, state: State, waiting: int, limit: int, link: str) -> Message:
    """Report that too many records wait, or no longer."""
    trigger = f"airflow dags trigger {dag_id(archive)} --conf '{{\"max_records\": {waiting}}}'"
    return of_incident(
        "lag",
        state,
        archive,
        ("too many records wait", "no longer too many records wait"),
        [f"{waiting:,} offsets wait after the run; alerts.max_lag_records is {limit:,}"],
        [status(archive), command(trigger, "if runs stop at source.max_records_per_run")],
        link,
        fields={"lag": waiting, "max_lag_records": limit},
    )


def late_hour(
    archive: str,
    state: State,
    until: datetime | None,
    moment: datetime,
    max_age: timedelta,
    link: str,
    limit: str = "alerts.max_age",
) -> Message:
    """Report that an hour is not closed in time, or is again. `until`: the end of the last closed hour, or None."""
    hour = f"the hour from {until:%Y-%m-%d %H:%M} UTC" if until else "its first hour"
    age = f", {_spelt(moment - until)} ago" if until else ""
    ended = f"Hours are closed until {isoformat(until)}{age}" if until else "No hour is closed yet"
    return of_incident(
        "late_hour",
        state,
        archive,
        (f"{hour} is late", "hours close in time again"),
        [f"{ended}; {limit} is {_spelt(max_age)}"],
        [status(archive), examine(archive)],
        link,
        fields={"closed_until": isoformat(until) if until else None, "max_age_seconds": int(max_age.total_seconds())},
    )


def loss(archive: str, figures: Figures, link: str) -> Message:
    """Report that a run recorded offsets as lost."""
    by = ", ".join(f"{name} {number:,}" for name, number in figures.lost_by.items())
    hours = ", ".join(f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}" for start, end in _spans(figures.incomplete))
    unsure, closed = figures.unsure_until, figures.closed_until
    waiting = unsure is not None and (closed is None or closed < unsure)
    return Message(
        kind="loss",
        state="event",
        archive=archive,
        title=f"Archive {archive}: {figures.lost:,} offsets were recorded as lost for ever",
        cause="Kafka no longer had their records, and a policy or a repair recorded them as lost",
        bad=(
            *([f"Lost offsets by partition: {by}"] if by else []),
            *([f"Incomplete hours (UTC): {hours}"] if hours else []),
            *(
                [f"Hours before {unsure:%Y-%m-%d %H:%M} UTC that are still open will be incomplete, too"]
                if waiting
                else []
            ),
            f"Runs of the ledger: {', '.join(figures.runs)}",
        ),
        do=(
            last_hours(archive, 72),
            *(show(archive, run) for run in figures.runs[:3]),
        ),
        link=link,
        fields={
            "lost": figures.lost,
            "lost_by": figures.lost_by,
            "incomplete": [isoformat(hour) for hour in figures.incomplete],
            "runs": list(figures.runs),
        },
    )


# What an audit found, and that it finds this no more: damage, and a state of the brokers.
_OF_AUDIT: dict[Kind, tuple[str, str]] = {
    "audit": ("the audit found damage", "the audit finds no damage any more"),
    "stop": (
        "the audit found that the next run stops", "the audit finds nothing any more that stops the next run",
    ),
}  # fmt: skip


def of_audit(
    kind: Kind, archive: str, state: State, cause: str, report: str, do: Sequence[Action], link: str
) -> Message:
    """Report the findings of an audit, or their end. `do`: their actions."""
    bad, fields = [f"Report: {report}"], {"report": report}
    return of_incident(kind, state, archive, _OF_AUDIT[kind], bad, do, link, cause, fields)


def whole_again(archive: str, figures: Figures, link: str) -> Message:
    """Report that a repair or a rebuild has written again all that the audit found damaged."""
    run = figures.runs[-1]
    return Message(
        kind="audit",
        state="over",
        archive=archive,
        title=f"Archive {archive}: the damage that the audit found is repaired",
        bad=(f"Run {run} has written it again, and read it to check",),
        link=link,
        fields={"run": run},
    )


def _spans(hours: Sequence[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Return consecutive hours as times from, to."""
    starts = [hour for hour in hours if hour - HOUR not in hours]
    ends = [hour + HOUR for hour in hours if hour + HOUR not in hours]
    return zip(starts, ends, strict=True)


def _spelt(time: timedelta) -> str:
    minutes = round(time.total_seconds() / 60)
    days, hours, minutes_left = minutes // 1440, minutes % 1440 // 60, minutes % 60
    parts = [(days, "d"), (hours, "h"), (minutes_left, "min")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 min"


def paused(archive: str, check: Finding | None, link: str) -> MessageOf:
    """Report that the DAG is paused while records wait, or no longer."""
    over = "its DAG is no longer paused, or nothing waits"
    return _of("paused", archive, f"DAG {dag_id(archive)} is paused, and records wait", over, check, link)


def unaudited(archive: str, check: Finding | None, link: str) -> MessageOf:
    """Report that audits do not run, or do again."""
    return _of("unaudited", archive, "it is not audited", "it is audited again", check, link)


def wrong_file(archive: str, error: str, link: str) -> MessageOf:
    """Report that the YAML file of the archive is wrong, or no longer.

    :param error: names file and key.
    """
    cause = " ".join(error.split())
    title = f"its YAML file is wrong, so nothing is archived: {foreign(_FOLDERS.sub('', cause), SUBJECT)}"
    do = (command("airflow archive validate"),)
    return _message_of("wrong_file", archive, title, "its YAML file is valid again", cause, do, link)


def gone(archive: str, file: str, link: str) -> MessageOf:
    """Report that no file declares the archive any more, or one does again."""
    ends = " && ".join(f"airflow dags delete --yes {dag}" for dag in (dag_id(archive), audit_dag_id(archive)))
    do = (
        words(f"put {file or 'its YAML file'} back"),
        command(ends, "if the archive has ended (what is stored stays)"),
    )
    cause = f"It was declared by {file}" if file else ""
    return _message_of(
        "gone", archive, "its YAML file is gone, so nothing is archived", "it is declared again", cause, do, link
    )


def _of(kind: Kind, archive: str, begins: str, over: str, check: Finding | None, link: str) -> MessageOf:
    return _message_of(kind, archive, begins, over, check.text if check else "", check.actions if check else (), link)


def _message_of(
    kind: Kind, archive: str, begins: str, over: str, cause: str, do: Sequence[Action], link: str
) -> MessageOf:
    def message(state: State, before: Incident | None) -> Message:
        since = [f"Since {before.since}"] if state == "over" and before else []
        return of_incident(kind, state, archive, (begins, over), since, do, link, cause)

    return message

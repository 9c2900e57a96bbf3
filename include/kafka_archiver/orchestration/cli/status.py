"""`airflow archive status`: how far each archive is, and how far behind."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

from kafka_archiver.audit.report import count
from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, answering
from kafka_archiver.steps.status import ArchiveStatus, HourStatus, last_hours, status

# Troubles shown of each kind: a moved group is one for every partition.
SHOWN = 3
Shown: TypeAlias = tuple[ArchiveStatus, list[HourStatus] | None]


@answering
def show_status(args: Namespace) -> Answer:
    """The status of these archives, or of all."""

    def look(archive: Archive) -> Shown:
        context, now = open_archive(archive), datetime.now(UTC)
        return status(context, facts_of(archive, now)), last_hours(context, args.hours, now) if args.hours else None

    found, failures = ask_each(args.archives, look)
    problems = [(one.archive, sum(t.severity == "problem" for t in one.troubles)) for one, _ in found]
    failures += [f"{name}: {count(number, 'problem')}" for name, number in problems if number]
    tables = [table for one, hours in found for table in (_table(one), *([hours_table(hours)] if hours else []))]
    return Answer([_document(*shown) for shown in found], tables, failures)


def _document(one: ArchiveStatus, hours: list[HourStatus] | None) -> dict[str, Any]:
    document = {**one.model_dump(), "lag": one.lag, "oldest_unarchived": one.oldest_unarchived}
    return document if hours is None else {**document, "hours": [hour.model_dump() for hour in hours]}


def _table(one: ArchiveStatus) -> Table:
    columns = ("topic", "partition", "committed", "archived to", "log start", "log end", "lag", "oldest unarchived")
    rows = [
        (p.topic, p.partition, p.committed, p.archived_to, p.log_start, p.log_end, p.lag, p.oldest_unarchived)
        for p in one.partitions
    ]
    lost = f"{one.lost:,} offsets lost for ever" if one.lost else None
    return Table(columns, rows, f"{one.archive}: {', '.join(_summary(one))}", lost, below=list(_troubles(one)))


def _troubles(one: ArchiveStatus) -> Iterator[str]:
    """A line for each trouble, with its commands; only the first ones of a kind."""
    kinds = Counter((trouble.name, trouble.severity) for trouble in one.troubles)
    for (name, severity), number in kinds.items():
        these = [trouble for trouble in one.troubles if (trouble.name, trouble.severity) == (name, severity)]
        for trouble in these[:SHOWN]:
            line = f"{severity}: {name}: {trouble.found}"
            yield Red(line) if severity == "problem" else line
            yield from (f"  - {command}" for command in trouble.do)
        if number > SHOWN:
            line = f"{severity}: {name}: {number - SHOWN:,} more; `--output json` has all"
            yield Red(line) if severity == "problem" else line


def hours_table(hours: list[HourStatus]) -> Table:
    """A table of hours; hours before the first proof are only counted."""
    before = next((number for number, hour in enumerate(hours) if hour.status), 0)
    columns = ("hour", "status", "rows", "bytes", "objects", "late rows", "dead letters", "complete as of", "closed by")
    rows = [
        (h.hour_start, Red(h.status) if h.status == "incomplete" else h.status, h.rows, h.bytes, h.objects,
         h.late_rows, h.dead_letters, h.complete_as_of, h.closed_by)
        for h in hours[before:]
    ]  # fmt: skip
    lacking = sum(h.status == "incomplete" for h in hours)
    alarm = f"{lacking} of {len(hours)} hours are past and incomplete: what is missing will not come by itself"
    below = [f"{count(before, 'earlier hour')} without a proof"] if before else []
    return Table(columns, rows, None, alarm if lacking else None, below)


def _summary(one: ArchiveStatus) -> Iterator[str]:
    oldest = f", the oldest of {isoformat(one.oldest_unarchived)}" if one.oldest_unarchived else ""
    yield f"lag {one.lag:,}{oldest}"
    if one.last_commit:
        yield f"last commit {isoformat(one.last_commit.committed_at)} (run {one.last_commit.run})"
    else:
        yield "nothing committed yet"
    yield f"closed until {isoformat(one.closed_until)}" if one.closed_until else "no hour closed yet"
    if one.unfinished:
        yield f"unfinished: {', '.join(one.unfinished)}"

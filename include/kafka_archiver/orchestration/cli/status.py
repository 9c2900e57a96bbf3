"""`airflow archive status`: how far each archive is, and how far behind."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kafka_archiver.audit.report import count
from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.errors import TransientError
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, answering
from kafka_archiver.steps.health import HealthCheck
from kafka_archiver.steps.health.judge import spelt
from kafka_archiver.steps.health.own import checks_of
from kafka_archiver.steps.overview import Snapshot, look
from kafka_archiver.steps.status import ArchiveStatus, HourStatus, last_hours

# Troubles shown of each kind: a moved group is one for every partition.
SHOWN = 3


class Shown(NamedTuple):
    """One archive, as the page has it too: its state, which has answered, its checks and, if wanted, its hours."""

    snapshot: Snapshot
    state: ArchiveStatus
    checks: list[HealthCheck]
    now: datetime
    hours: list[HourStatus] | None


@answering
def show_status(args: Namespace) -> Answer:
    """The status of these archives, or of all."""

    def ask(archive: Archive) -> Shown:
        context, now = open_archive(archive), datetime.now(UTC)
        seen = look(context, facts_of(archive, now))
        if seen.state is None:
            raise TransientError(seen.error or "no answer")
        hours = last_hours(context, args.hours, now) if args.hours else None
        return Shown(seen, seen.state, checks_of(archive, seen, now), now, hours)

    found, failures = ask_each(args.archives, ask)
    problems = [(one.state.archive, len(one.snapshot.problems)) for one in found]
    failures += [f"{name}: {count(number, 'problem')}" for name, number in problems if number]
    tables = [table for one in found for table in (_table(one), *([hours_table(one.hours)] if one.hours else []))]
    return Answer([_document(one) for one in found], tables, failures)


def _document(one: Shown) -> dict[str, Any]:
    state, seen = one.state, one.snapshot
    document = {
        **state.model_dump(),
        "lag": state.lag,
        "oldest_unarchived": state.oldest_unarchived,
        "hours_open": seen.hours_open(one.now),
        "health": [check.model_dump() for check in one.checks],
        "last_run": {**seen.last_run.model_dump(), **_effort(seen)} if seen.last_run else None,
        "audit": seen.audit and seen.audit.model_dump(),
    }
    return document if one.hours is None else {**document, "hours": [hour.model_dump() for hour in one.hours]}


def _effort(seen: Snapshot) -> dict[str, float | None]:
    """What Airflow knows of the last runs. `seconds`: of the last successful one."""
    return {
        "seconds": seen.duration.total_seconds() if seen.duration else None,
        "cpu_seconds": seen.effort.cpu_seconds if seen.effort else None,
        "retries": seen.effort.retries if seen.effort else None,
    }


def _table(shown: Shown) -> Table:
    one = shown.state
    columns = ("topic", "partition", "committed", "archived to", "log start", "log end", "lag", "oldest unarchived")
    rows = [
        (p.topic, p.partition, p.committed, p.archived_to, p.log_start, p.log_end, p.lag, p.oldest_unarchived)
        for p in one.partitions
    ]
    lost = f"{one.lost:,} offsets lost for ever" if one.lost else None
    below = [*_figures(shown.snapshot), *_limits(shown), *_troubles(one)]
    return Table(columns, rows, f"{one.archive}: {', '.join(_summary(one))}", lost, below=below)


def _figures(seen: Snapshot) -> Iterator[str]:
    """What the last run wrote, and what the last audit found."""
    if last := seen.last_run:
        took = f", in {spelt(seen.duration)}" if seen.duration else ""
        yield (
            f"last run: {count(last.rows, 'row')} in {count(last.objects, 'object')} of {count(last.bytes, 'byte')}"
            f"{took}, {count(last.dead_letters, 'dead letter')}"
        )
        if last.dead_letters:
            yield f"  - airflow archive replay-dead-letters {seen.archive}"
    if audit := seen.audit:
        counts = audit.counts
        stored = f"; {count(counts.objects, 'object')} of {count(counts.bytes, 'byte')}" if counts else ""
        yield f"last audit: {audit.verdict} at {isoformat(audit.at)}{stored}"
    elif seen.last_run:
        yield "last audit: none yet"


def _limits(shown: Shown) -> Iterator[str]:
    """The checks of health that are not ok, except those that only repeat a trouble."""
    for check in shown.checks:
        if check.verdict != "ok" and not any(f"{t.name}: " in check.found for t in shown.state.troubles):
            line = f"{check.verdict}: {check.name}: {check.found}"
            yield Red(line) if check.verdict == "failing" else line
            yield from (f"  - {command}" for command in check.do)


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

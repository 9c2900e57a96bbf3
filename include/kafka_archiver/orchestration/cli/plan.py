"""`airflow archive plan`: what a run would archive, without archiving it."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pendulum
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable

from kafka_archiver.config import Archive
from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ArchiverError, ConfigError
from kafka_archiver.intervals import Interval
from kafka_archiver.orchestration.cli.opening import find_archive, open_archive
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.plan import Plan
from kafka_archiver.planning.beginnings import troubles
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.line import Line, read_line
from kafka_archiver.steps.plan import propose
from kafka_archiver.steps.plan.survey import survey


@answering
def show_plan(args: Namespace) -> Answer:
    """The plan that the interval has, or would get now."""
    archive, now = find_archive(args.archive), datetime.now(UTC)
    interval = _interval(archive, args.interval_start) if args.interval_start else last_interval(archive, now)
    context = open_archive(archive)
    existing = context.ledger.current(interval.id)
    plan = existing or propose(context, interval, "backfill" if args.backfill else "scheduled")
    line = read_line(context)
    first = [earlier.run for earlier in line.unfinished if earlier.run != plan.run]
    triggered = [decided for p in plan.partitions for decided in p.decided]
    ahead = _troubles_ahead(context, line) if existing else []
    document = {
        "archive": archive.archive,
        "run": plan.run,
        "exists": existing is not None,
        "offsets": plan.count,
        "chunks": sum(1 for _ in plan.chunks()),
        "policies_triggered": triggered,
        "next_run_stops_at": ahead,
        "finished_first": first,
        "plan": plan.model_dump(),
    }
    tables = list(_tables(plan, existing is not None, triggered, first))
    if ahead:
        tables.append(Table(("the next run would stop at",), [(line,) for line in ahead]))
    return Answer(document, tables)


def _troubles_ahead(context: Context, line: Line) -> list[str]:
    """What a replay says nothing of."""
    try:
        expected = line.expected(context.ledger)
        seen = survey(context, line, expected).seen
    except ArchiverError as error:
        return [str(error)]
    return [str(found) for found in troubles(context.archive, seen, {p.name: p for p in expected.partitions})]


def _interval(archive: Archive, start: datetime) -> Interval:
    if archive.schedule is None:
        return Interval(start=start, end=start + timedelta(seconds=1))
    earliest = TimeRestriction(earliest=pendulum.instance(start), latest=None, catchup=True)
    timetable = CronDataIntervalTimetable(archive.schedule, archive.timezone)
    found = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=earliest)
    if found is None or found.data_interval is None or found.data_interval.start != start:
        before = last_interval(archive, start).end
        raise ConfigError(
            f"No interval of the schedule {archive.schedule!r} starts at {isoformat(start)}; "
            f"the one that includes it starts at {isoformat(before)}."
        )
    return Interval(start=start, end=found.data_interval.end)


def _tables(plan: Plan, exists: bool, triggered: list[str], first: list[str]) -> Iterator[Table]:
    what = f"{plan.count:,} offsets in {sum(1 for _ in plan.chunks()):,} chunks"
    title = f"{plan.archive}: interval {plan.interval}, run {plan.run}, {plan.origin}: {what}"
    if exists:
        title += f"\nPlanned at {isoformat(plan.planned_at)} already: a run would replay this plan."
    if first:
        title += f"\nA run would first finish {', '.join(first)}."
    columns = ("topic", "partition", "ranges", "offsets", "lost", "log start", "log end")
    rows = [
        (
            p.topic,
            p.partition,
            ", ".join(map(str, p.offset_ranges)) or None,
            p.count,
            sum(end - start for start, end in p.lost),
            p.log_start,
            p.log_end,
        )
        for p in plan.partitions
    ]
    yield Table(columns, rows, title)
    if triggered:
        yield Table(("policies triggered",), [(line,) for line in triggered])

"""`airflow archive plan`: what a run would archive, without archiving it."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime

from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.dag_run.schedule import interval_from, last_interval, second_before
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.values.documents import isoformat
from kafka_archiver.work.plan import Preview, is_planned_since, preview


@answering
def show_plan(args: Namespace) -> Answer:
    """The plan that the interval has or would get now. Without an interval: the plan of a run triggered now."""
    archive, now = find_archive(args.archive), datetime.now(UTC)
    context, interval = open_archive(archive), last_interval(archive, now)
    if args.interval_start:
        interval = interval_from(archive, args.interval_start)
    elif not args.backfill and is_planned_since(context, interval, now) is False:
        # The last interval has a plan already: a run that is triggered now gets an interval of its own.
        interval = second_before(now)
    found = preview(context, interval, "backfill" if args.backfill else "scheduled")
    return Answer(found.model_dump(), list(_tables(found)))


def _tables(found: Preview) -> Iterator[Table]:
    plan = found.plan
    what = f"{found.offsets:,} offsets in {found.chunks:,} chunks"
    title = f"{plan.archive}: interval {plan.interval}, run {plan.run}, {plan.origin}: {what}"
    if found.exists:
        title += f"\nPlanned at {isoformat(plan.planned_at)}: a run would replay this plan."
    if found.finished_first:
        title += f"\nA run would first finish {', '.join(found.finished_first)}."
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
    if found.policies_triggered:
        yield Table(("policies triggered",), [(line,) for line in found.policies_triggered])
    if found.next_run_stops_at:
        yield Table(("the next run would stop at",), [(line,) for line in found.next_run_stops_at])

"""`airflow archive plan`: what a run would archive, without archiving it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE
from kafka_archiver.orchestration.terminal.options import OUTPUT, moment, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.work.plan import Preview

PLAN = ActionCommand(
    name="plan",
    help="What a run would archive (a dry run)",
    description=f"""\
Show the plan that a run of an interval would make now, without making it: the offset ranges of each partition, the
number of chunks (units of work, and of objects), the policies that decided, and the unfinished runs that the run would
finish first. If the interval has a plan already, that plan is shown: a run would replay it. Where a policy says
`fail`, the command fails as the run would.

json and yaml: {{archive, run, exists (whether the interval has this plan already), offsets, chunks,
policies_triggered (a list of texts), finished_first (a list of runs), plan (the document plan.json, see
docs/FORMAT.md)}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.show_plan"),
    args=(
        ARCHIVE,
        option(
            "-i",
            "--interval-start",
            type=moment,
            metavar="TIME",
            help="The start of the interval, as in 2026-11-21T05:00:00Z;\n"
            "default: as for a run that is triggered now: the last complete interval of the schedule or,\n"
            "if that has a plan already, what has arrived in Kafka since",
        ),
        option(
            "--backfill",
            action="store_true",
            help="Plan as a backfill does: only the offsets of the interval's own hours that no plan covers;\n"
            "the group is not moved. Default: as a scheduled run, from the group's offsets to the end of the log",
        ),
        OUTPUT,
    ),
)


@print_answer
def show_plan(args: Namespace) -> Answer:
    """Show the plan that the interval has or would get now. Without an interval: the plan of a run triggered now."""
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive
    from kafka_archiver.orchestration.dag_run.schedule import interval_from, last_interval, second_before
    from kafka_archiver.work.plan import is_planned_since, preview

    archive, asked_at = find_archive(args.archive), datetime.now(UTC)
    context, interval = open_archive(archive), last_interval(archive, asked_at)
    if args.interval_start:
        interval = interval_from(archive, args.interval_start)
    elif not args.backfill and is_planned_since(context, interval, asked_at) is False:
        # The last interval has a plan already: a run that is triggered now gets an interval of its own.
        interval = second_before(asked_at)
    outcome = preview(context, interval, "backfill" if args.backfill else "scheduled")
    return Answer(outcome.model_dump(), list(_tables(outcome)))


def _tables(outcome: Preview) -> Iterator[Table]:
    plan = outcome.plan
    what = f"{outcome.offsets:,} offsets in {outcome.chunks:,} chunks"
    title = f"{plan.archive}: interval {plan.interval}, run {plan.run}, {plan.origin}: {what}"
    if outcome.exists:
        title += f"\nPlanned at {isoformat(plan.planned_at)}: a run would replay this plan."
    if outcome.finished_first:
        title += f"\nA run would first finish {', '.join(outcome.finished_first)}."
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
    if outcome.policies_triggered:
        yield Table(("policies triggered",), [(line,) for line in outcome.policies_triggered])
    if outcome.next_run_stops_at:
        yield Table(("the next run would stop at",), [(line,) for line in outcome.next_run_stops_at])

"""`airflow archive show`: one run with its plan, its account and its objects."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE, run_names
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Table, print_answer
from kafka_archiver.values.documents import isoformat

if TYPE_CHECKING:
    from kafka_archiver.context.history import RunDetails
    from kafka_archiver.model.manifest import Manifest, ObjectEntry

SHOW = ActionCommand(
    name="show",
    help="One run: its plan, its account and its objects",
    description=f"""\
Show what the ledger records about a run: the planned offset ranges, the account of these offsets (archived, filtered,
dead-lettered, absent from Kafka, or lost), and the objects.

json and yaml: {{archive, run, state (see `airflow archive runs`), store, plan, manifest (null until it is written),
commit (null until it is committed)}}; the last three are the documents of the ledger, see docs/FORMAT.md.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.show_run"),
    args=(
        ARCHIVE,
        option(
            "run",
            metavar="RUN",
            completer=run_names,
            help="20261121T050000Z (as in `airflow archive runs`), the start of its interval\n"
            "(2026-11-21T05:00:00Z), or last",
        ),
        OUTPUT,
    ),
)


@print_answer
def show_run(args: Namespace) -> Answer:
    """Show what the ledger records about the run."""
    from kafka_archiver.context.history import run_details
    from kafka_archiver.orchestration.cli.names import find_archive, run_name_of
    from kafka_archiver.orchestration.connections import open_archive

    run = run_details(open_archive(find_archive(args.archive)).ledger, run_name_of(args.run))
    return Answer(run.model_dump(), [_plan(run), *(_written(run, run.manifest) if run.manifest else ())])


def _plan(run: RunDetails) -> Table:
    plan, commit = run.plan, run.commit
    title = (
        f"{plan.archive}: run {plan.run}, {plan.origin}, interval {plan.interval}\n"
        f"{run.state}; planned at {isoformat(plan.planned_at)}"
    )
    if commit:
        title += f", {commit.outcome.replace('_', ' ')} at {isoformat(commit.committed_at)}"
        title += f" by {commit.by}" if commit.by else ""
    rows = [
        (p.topic, p.partition, ", ".join(map(str, p.offset_ranges)) or None, p.count, p.start, p.end)
        for p in plan.partitions
    ]
    return Table(("topic", "partition", "ranges", "offsets", "group before", "group after"), rows, title)


def _written(run: RunDetails, manifest: Manifest) -> Iterator[Table]:
    from kafka_archiver.model.chunk_accounts import FATES

    rows: list[tuple[Cell, ...]] = [
        (partition.topic, partition.partition, *(getattr(partition, fate) for fate in FATES), partition.offsets)
        for partition in run.accounts
    ]
    everything = [manifest.account[fate] for fate in FATES]
    rows.append(("all", None, *everything, sum(everything)))
    fates = [fate.replace("_", "-") for fate in FATES]
    yield Table(("topic", "partition", *fates, "offsets"), rows, "Account")
    for title, objects in (("Objects", manifest.objects), ("Dead letters", manifest.dead_letters)):
        if objects or title == "Objects":
            yield _objects(title, objects)


def _objects(title: str, objects: Sequence[ObjectEntry]) -> Table:
    return Table(
        ("object", "rows", "bytes", "first offset", "last offset", "checksum"),
        [(o.key, o.rows, o.bytes, o.first_offset, o.last_offset, o.checksum) for o in objects],
        f"{title}: {len(objects):,} with {sum(o.rows for o in objects):,} rows",
    )

"""`airflow archive runs`: the latest runs."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ANSWER, ARCHIVE
from kafka_archiver.orchestration.terminal.options import OUTPUT, option, positive
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.context.history import RunSummary

RUNS = ActionCommand(
    name="runs",
    help="The latest runs in the ledger",
    description=f"""\
List the runs of an archive from its ledger, the latest interval first.

States: planned (the offset ranges are frozen), written (the objects and the manifest are there), committed (final),
settled (its hours are proved too).

json and yaml: a list of {{run, interval_start, interval_end, origin (scheduled, manual, backfill, …), planned_at,
offsets, objects, rows, bytes (null until they are written), state, letter_objects, letter_bytes (of dead letters),
replaced_by (null, or the run whose objects count in place of this one's)}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.list_runs"),
    args=(
        ARCHIVE,
        option("-n", "--last", type=positive, default=20, metavar="N", help="How many runs (default: 20)"),
        OUTPUT,
    ),
)


@print_answer
def list_runs(args: Namespace) -> Answer:
    """List the last planned runs, newest first."""
    from kafka_archiver.context.history import last_runs
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive

    runs = last_runs(open_archive(find_archive(args.archive)).ledger, args.last)
    columns = ("run", "origin", "planned at", "offsets", "objects", "rows", "bytes", "state")
    rows = [(r.run, r.origin, r.planned_at, r.offsets, r.objects, r.rows, r.bytes, _state(r)) for r in runs]
    return Answer([run.model_dump() for run in runs], [Table(columns, rows)])


def _state(run: RunSummary) -> str:
    """Return the state of a run; of one that another run has replaced, which one."""
    return f"replaced by {run.replaced_by}" if run.replaced_by else run.state

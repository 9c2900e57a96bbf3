"""`airflow archive runs`: the latest runs."""

from argparse import Namespace

from kafka_archiver.context.history import last_runs
from kafka_archiver.orchestration.cli.find import find_archive
from kafka_archiver.orchestration.connections import open_archive
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer


@print_answer
def list_runs(args: Namespace) -> Answer:
    """List the last planned runs, newest first."""
    runs = last_runs(open_archive(find_archive(args.archive)).ledger, args.last)
    columns = ("run", "origin", "planned at", "offsets", "objects", "rows", "bytes", "state")
    rows = [(r.run, r.origin, r.planned_at, r.offsets, r.objects, r.rows, r.bytes, r.state) for r in runs]
    return Answer([run.model_dump() for run in runs], [Table(columns, rows)])

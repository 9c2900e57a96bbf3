"""`airflow archive runs`: what happened lately."""

from argparse import Namespace

from kafka_archiver.orchestration.cli.find import find_archive, open_archive
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.steps.history import last_runs


@answering
def list_runs(args: Namespace) -> Answer:
    """The runs that were planned last, the newest first."""
    found = last_runs(open_archive(find_archive(args.archive)).ledger, args.last)
    columns = ("run", "origin", "planned_at", "offsets", "objects", "rows", "bytes", "state")
    rows = [[getattr(run, column) for column in columns] for run in found]
    documents = [
        {
            "run": run.run,
            "number": run.number,
            "interval_start": run.interval.start,
            "interval_end": run.interval.end,
            **{column: getattr(run, column) for column in columns[1:]},
        }
        for run in found
    ]
    return Answer(documents, [Table([column.replace("_", " ") for column in columns], rows)])

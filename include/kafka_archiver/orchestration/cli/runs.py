"""`airflow archive runs`: what happened lately."""

from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka_archiver.ledger import Ledger
from kafka_archiver.orchestration.cli.find import find_archive, open_archive
from kafka_archiver.orchestration.cli.output import Answer, Table, answering
from kafka_archiver.orchestration.cli.states import states


@answering
def list_runs(args: Namespace) -> Answer:
    """The last runs, the latest interval first."""
    ledger = open_archive(find_archive(args.archive)).ledger
    known = states(ledger)
    last = list(reversed(known))[: args.last]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda run: _describe(ledger, run, known[run]), last))
    columns = ("run", "origin", "planned_at", "offsets", "objects", "rows", "bytes", "state")
    rows = [[run[column] for column in columns] for run in found]
    return Answer(found, [Table([column.replace("_", " ") for column in columns], rows)])


def _describe(ledger: Ledger, run: str, state: str) -> dict[str, Any]:
    plan, manifest = ledger.plan(run), ledger.manifest(run)
    return {
        "run": run,
        "interval_start": plan and plan.interval.start,
        "interval_end": plan and plan.interval.end,
        "origin": plan and plan.origin,
        "planned_at": plan and plan.planned_at,
        "offsets": plan and plan.count,
        "objects": manifest and len(manifest.objects),
        "rows": manifest and manifest.rows,
        "bytes": manifest and sum(o.bytes for o in manifest.objects),
        "state": state,
    }

"""`airflow archive clean`: remove what killed attempts and rebuilds have left."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.leftovers import Leftover
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_ledger
from kafka_archiver.orchestration.terminal.consent import ask_consent
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer
from kafka_archiver.records.writer.disk import abandoned, sweep
from kafka_archiver.work.clean_up import leftovers, remove


@print_answer
def clean(args: Namespace) -> Answer:
    """Find the leftovers of these archives, or of all, and of this machine; remove them unless it is a dry run."""
    before = datetime.now(UTC) - args.older_than

    def find_leftovers(archive: Archive) -> tuple[Ledger, list[Leftover]]:
        ledger = open_ledger(archive)
        return ledger, leftovers(ledger, before)

    leftovers_by_ledger, failures = ask_each(args.archives, find_leftovers)
    rows = list(_rows(leftovers_by_ledger))
    removed = not args.dry_run and (not rows or args.yes or ask_consent(f"Remove {_count(rows)}?"))
    if removed:
        for ledger, items in leftovers_by_ledger:
            remove(ledger, items)
        sweep(None)
    title = f"Leftovers: {_count(rows)}; {'removed' if removed else 'nothing was removed'}" if rows else "Leftovers"
    columns = ("archive", "kind", "run", "what")
    table = Table(columns, [[row[column] for column in columns] for row in rows], title)
    return Answer({"removed": removed, "leftovers": rows}, [table], failures)


def _rows(leftovers_by_ledger: Sequence[tuple[Ledger, list[Leftover]]]) -> Iterator[dict[str, Any]]:
    for ledger, items in leftovers_by_ledger:
        for kind, key, run, upload_id in items:
            yield {"archive": ledger.archive, "kind": kind, "what": key, "run": run, "upload_id": upload_id}
    for directory in abandoned(None):
        yield {"archive": None, "kind": "temporary", "what": str(directory), "run": None, "upload_id": None}


def _count(rows: Sequence[dict[str, Any]]) -> str:
    kinds = [row["kind"] for row in rows]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds))

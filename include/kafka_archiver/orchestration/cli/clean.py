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
from kafka_archiver.orchestration.terminal.consent import agreed
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.records.writer.disk import abandoned, sweep
from kafka_archiver.work.clean_up import find_leftovers, remove_leftovers


@answering
def clean(args: Namespace) -> Answer:
    """Find the leftovers of these archives, or of all, and of this machine; remove them unless it is a dry run."""
    before = datetime.now(UTC) - args.older_than

    def look(archive: Archive) -> tuple[Ledger, list[Leftover]]:
        ledger = open_ledger(archive)
        return ledger, find_leftovers(ledger, before)

    found, failures = ask_each(args.archives, look)
    rows = list(_rows(found))
    removed = not args.dry_run and (not rows or args.yes or agreed(f"Remove {_count(rows)}?"))
    if removed:
        for ledger, items in found:
            remove_leftovers(ledger, items)
        sweep(None)
    title = f"Leftovers: {_count(rows)}; {'removed' if removed else 'nothing was removed'}" if rows else "Leftovers"
    columns = ("archive", "kind", "run", "what")
    table = Table(columns, [[row[column] for column in columns] for row in rows], title)
    return Answer({"removed": removed, "leftovers": rows}, [table], failures)


def _rows(found: Sequence[tuple[Ledger, list[Leftover]]]) -> Iterator[dict[str, Any]]:
    for ledger, items in found:
        for kind, key, run, upload_id in items:
            yield {"archive": ledger.archive, "kind": kind, "what": key, "run": run, "upload_id": upload_id}
    for directory in abandoned(None):
        yield {"archive": None, "kind": "temporary", "what": str(directory), "run": None, "upload_id": None}


def _count(rows: Sequence[dict[str, Any]]) -> str:
    kinds = [row["kind"] for row in rows]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds))

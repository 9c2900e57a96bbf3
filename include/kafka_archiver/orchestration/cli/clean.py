"""`airflow archive clean`: what killed attempts and rebuilds have left, removed."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.leftovers import Leftover
from kafka_archiver.orchestration.cli.consent import agreed
from kafka_archiver.orchestration.cli.find import ask_each, open_archive
from kafka_archiver.orchestration.cli.output import Answer, Table, answering
from kafka_archiver.steps.clean_up import leftovers, remove
from kafka_archiver.steps.context import Context
from kafka_archiver.writer.disk import abandoned, sweep


@answering
def clean(args: Namespace) -> Answer:
    """Find the leftovers of one archive, or of all, and of this machine; remove them unless it is a dry run."""
    before = datetime.now(UTC) - args.older_than

    def look(archive: Archive) -> tuple[Context, list[Leftover]]:
        context = open_archive(archive)
        return context, leftovers(context, before)

    found, failures = ask_each(args.archive, look)
    rows = list(_rows(found))
    removed = not args.dry_run and (not rows or args.yes or agreed(f"Remove {_count(rows)}?"))
    if removed:
        for context, items in found:
            remove(context, items)
        sweep(None)
    title = f"Leftovers: {_count(rows)}; {'removed' if removed else 'nothing was removed'}" if rows else "Leftovers"
    columns = ("archive", "kind", "run", "what")
    table = Table(columns, [[row[column] for column in columns] for row in rows], title)
    return Answer({"removed": removed, "leftovers": rows}, [table], failures)


def _rows(found: Sequence[tuple[Context, list[Leftover]]]) -> Iterator[dict[str, Any]]:
    for context, items in found:
        for kind, key, run, upload_id in items:
            yield {"archive": context.archive.archive, "kind": kind, "what": key, "run": run, "upload_id": upload_id}
    for directory in abandoned(None):
        yield {"archive": None, "kind": "temporary", "what": str(directory), "run": None, "upload_id": None}


def _count(rows: Sequence[dict[str, Any]]) -> str:
    kinds = [row["kind"] for row in rows]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds))

"""`airflow archive clean`: remove what killed attempts and rebuilds have left."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ALL, ANSWER, YES
from kafka_archiver.orchestration.terminal.dialog import ask_consent
from kafka_archiver.orchestration.terminal.options import OUTPUT, duration, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, in_audit_log, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.ledger.ledger import Ledger
    from kafka_archiver.model.leftovers import Leftover

CLEAN = ActionCommand(
    name="clean",
    help="Remove what killed attempts and given-up rebuilds have left",
    description=f"""\
Remove what is no longer needed, or list it with --dry-run: unfinished uploads of offsets that are settled, everything
of rebuilds that were given up, objects that a rebuild has replaced or that no manifest names, and temporary files of
killed tasks on this machine. The DAG audit_NAME does the same once a day.

json and yaml: {{removed (true or false), leftovers: a list of {{archive (null: of this machine), kind (upload,
rebuild, superseded, attempt, probe or temporary), what (a key or a folder), run, upload_id}}}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.clean"),
    args=(
        ALL,
        option(
            "--older-than",
            type=duration,
            default=timedelta(days=1),
            metavar="TIME",
            help="Only what is older than this: 90s, 30m, 12h, 1d (default), 2w.\n"
            "A time shorter than your longest run could break a run at work",
        ),
        option("-n", "--dry-run", action="store_true", help="Only list"),
        YES,
        OUTPUT,
    ),
)


@print_answer
@in_audit_log
def clean(args: Namespace) -> Answer:
    """Find the leftovers of these archives, or of all, and of this machine; remove them unless it is a dry run."""
    from kafka_archiver.orchestration.cli.names import ask_each
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.records.writer.disk import sweep
    from kafka_archiver.work.clean_up import find_leftovers, remove_leftovers

    before = datetime.now(UTC) - args.older_than

    def leftovers_of(archive: Archive) -> tuple[Ledger, list[Leftover]]:
        ledger = open_ledger(archive)
        return ledger, find_leftovers(ledger, before)

    leftovers_by_ledger, failures = ask_each(args.archives, leftovers_of)
    rows = list(_rows(leftovers_by_ledger))
    removed = not args.dry_run and (not rows or args.yes or ask_consent(f"Remove {_count(rows)}?"))
    if removed:
        for ledger, items in leftovers_by_ledger:
            remove_leftovers(ledger, items)
        sweep(None)
    title = f"Leftovers: {_count(rows)}; {'removed' if removed else 'nothing was removed'}" if rows else "Leftovers"
    columns = ("archive", "kind", "run", "what")
    table = Table(columns, [[row[column] for column in columns] for row in rows], title)
    return Answer({"removed": removed, "leftovers": rows}, [table], failures)


def _rows(leftovers_by_ledger: Sequence[tuple[Ledger, list[Leftover]]]) -> Iterator[dict[str, Any]]:
    from kafka_archiver.records.writer.disk import abandoned

    for ledger, items in leftovers_by_ledger:
        for kind, key, run, upload_id in items:
            yield {"archive": ledger.archive, "kind": kind, "what": key, "run": run, "upload_id": upload_id}
    for directory in abandoned(None):
        yield {"archive": None, "kind": "temporary", "what": str(directory), "run": None, "upload_id": None}


def _count(rows: Sequence[dict[str, Any]]) -> str:
    kinds = [row["kind"] for row in rows]
    return ", ".join(f"{kinds.count(kind):,} {kind}" for kind in dict.fromkeys(kinds))

"""`airflow archive rotate-keys`: wrap the data keys of archives by their present master keys."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ALL, ANSWER, YES
from kafka_archiver.orchestration.terminal.dialog import ask_consent
from kafka_archiver.orchestration.terminal.options import OUTPUT, option
from kafka_archiver.orchestration.terminal.output import Answer, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.work.data_keys import RotatedKeys

ROTATE_KEYS = ActionCommand(
    name="rotate-keys",
    help="Wrap the data keys by the present master key",
    description=f"""\
After a change of the master key (store.encryption.client): unwrap each data key by the master key that has wrapped it,
and wrap it by the present one. Neither objects nor plans change. The earlier master key must still be known
(`previous_secrets` in the extra of the connection); once this command has succeeded, remove it there. Runs may be at
work meanwhile. May be repeated after a failure.

json and yaml: a list of {{archive, data_key, result (wrapped anew, to be wrapped anew, or as before)}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.rotate_keys"),
    args=(ALL, option("-n", "--dry-run", action="store_true", help="Only list"), YES, OUTPUT),
)


@print_answer
def rotate_keys(args: Namespace) -> Answer:
    """Rotate these archives, or all that encrypt their objects."""
    from kafka_archiver.orchestration.cli.names import ask_each
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.work.data_keys import rotate_data_keys

    sure = args.dry_run or args.yes or ask_consent("Wrap the data keys by the present master keys?")

    def turn(archive: Archive) -> tuple[str, RotatedKeys] | None:
        # Of all archives, only those that encrypt.
        if not args.archives and archive.store.encryption.client is None:
            return None
        return archive.archive, rotate_data_keys(
            open_ledger(archive), args.dry_run or not sure, partial(print, file=sys.stderr)
        )

    rotations, failures = ask_each(args.archives, turn)
    anew = "wrapped anew" if sure and not args.dry_run else "to be wrapped anew"
    rows = [
        {"archive": name, "data_key": key, "result": result}
        for name, rotated in filter(None, rotations)
        for keys, result in ((rotated.changed, anew), (rotated.same, "as before"))
        for key in keys
    ]
    columns = ("archive", "data_key", "result")
    return Answer(rows, [Table(columns, [[row[name] for name in columns] for row in rows], "Data keys")], failures)

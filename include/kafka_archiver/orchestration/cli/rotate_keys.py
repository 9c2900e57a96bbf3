"""`airflow archive rotate-keys`: wrap the data keys of archives by their present master keys."""

import sys
from argparse import Namespace

from kafka_archiver.config import Archive
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import open_ledger
from kafka_archiver.orchestration.terminal.consent import agreed
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.work.data_keys import RotatedKeys, rotate_data_keys


@answering
def rotate_keys(args: Namespace) -> Answer:
    """Rotate these archives, or all that encrypt their objects."""
    sure = args.dry_run or args.yes or agreed("Wrap the data keys by the present master keys?")

    def turn(archive: Archive) -> tuple[str, RotatedKeys] | None:
        # Of all archives, only those that encrypt.
        if not args.archives and archive.store.encryption.client is None:
            return None
        return archive.archive, rotate_data_keys(open_ledger(archive), args.dry_run or not sure, _say)

    found, failures = ask_each(args.archives, turn)
    anew = "wrapped anew" if sure and not args.dry_run else "to be wrapped anew"
    rows = [
        {"archive": name, "data_key": key, "result": result}
        for name, rotated in filter(None, found)
        for keys, result in ((rotated.changed, anew), (rotated.same, "as before"))
        for key in keys
    ]
    columns = ("archive", "data_key", "result")
    return Answer(rows, [Table(columns, [[row[name] for name in columns] for row in rows], "Data keys")], failures)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")

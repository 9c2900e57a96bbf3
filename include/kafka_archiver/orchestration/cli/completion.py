"""Arguments that several `airflow archive` commands share, and values that a shell completes.

Airflow's program calls argcomplete, so `eval "$(register-python-argcomplete airflow)"` is all that a shell needs. A
completer gives nothing rather than an error, and nobody waits for a store that does not answer. Loaded by every
`airflow` call: imports nothing heavy.
"""

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.terminal.options import option

# How long a shell waits for the store, and how many runs it shows.
SECONDS = 3.0
NEWEST = 20


def archive_names(**_: Any) -> Sequence[str]:
    """Return the names of all archives, also of those whose file is wrong."""
    from kafka_archiver.config.archives import declared_names
    from kafka_archiver.orchestration.folder import config_folder

    with suppress(ArchiverError, OSError):
        return declared_names(config_folder())
    return ()


ARCHIVE = option(
    "archive", metavar="NAME", help="The archive, as `airflow archive list` names it", completer=archive_names
)
ALL = option("archives", nargs="*", metavar="NAME", help="The archives; default: all of them", completer=archive_names)
YES = option("-y", "--yes", action="store_true", help="Do not ask for consent (asked only on a terminal)")
# The end of each description: what a program may rely on. (Airflow drops text that looks like [markup] from the help.)
ANSWER = """
Times are RFC 3339 in UTC; offset ranges are [start, end), the end not included. Only the result goes to stdout.
The exit code is 0, or 1 with the reason on stderr."""


def run_names(parsed_args: Namespace, **_: Any) -> Sequence[str]:
    """Return the newest runs of the archive that the call names; none if the store does not answer in time."""
    names: list[str] = []
    reading = Thread(target=_read_runs, args=(parsed_args.archive, names), daemon=True)
    reading.start()
    reading.join(SECONDS)
    return tuple(names)


def _read_runs(archive: str, names: list[str]) -> None:
    from airflow.sdk.exceptions import AirflowException

    from kafka_archiver.context.history import newest_runs
    from kafka_archiver.orchestration.cli.names import find_archive
    from kafka_archiver.orchestration.connections import open_archive

    with suppress(ArchiverError, AirflowException, OSError):
        names += newest_runs(open_archive(find_archive(archive)).ledger, NEWEST)

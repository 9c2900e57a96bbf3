"""Arguments that several `airflow archive` commands share. Loaded by every `airflow` call: imports nothing heavy."""

from kafka_archiver.orchestration.cli.completion import archive_names
from kafka_archiver.orchestration.terminal.options import option

ARCHIVE = option(
    "archive", metavar="NAME", help="The archive, as `airflow archive list` names it", completer=archive_names
)
ALL = option("archives", nargs="*", metavar="NAME", help="The archives; default: all of them", completer=archive_names)
YES = option("-y", "--yes", action="store_true", help="Do not ask for consent (asked only on a terminal)")
# The end of each description: what a program may rely on. (Airflow drops text that looks like [markup] from the help.)
ANSWER = """
Times are RFC 3339 in UTC; offset ranges are [start, end), the end not included. Only the result goes to stdout.
The exit code is 0, or 1 with the reason on stderr."""

"""What the definitions of several `airflow archive` commands share."""

from kafka_archiver.orchestration.terminal.options import option

# Where the commands are: each is imported when it runs.
HERE = "kafka_archiver.orchestration.cli"
ARCHIVE = option("archive", metavar="NAME", help="The archive, as `airflow archive list` names it")
ALL = option("archive", nargs="?", metavar="NAME", help="The archive; default: all of them")
YES = option("-y", "--yes", action="store_true", help="Do not ask first, which is done on a terminal only")
# At the end of each description: what a program may rely on. (What looks like [markup] in a text is lost in the help.)
ANSWER = """
Times are RFC 3339 in UTC; offset ranges are [start, end), the end not included. Only the result goes to stdout.
Ends with 0, or with 1 and the reason on stderr."""

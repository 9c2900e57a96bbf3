"""A command: `airflow archive count NAME`, the topics of an archive."""

from argparse import Namespace

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ARCHIVE
from kafka_archiver.orchestration.cli.names import find_archive
from kafka_archiver.orchestration.terminal.options import OUTPUT
from kafka_archiver.orchestration.terminal.output import report_errors, show

COUNT = ActionCommand(
    name="count",
    help="The number of topics",
    description="Print the number of topics.",
    func=lazy_load_command(f"{__name__}.count"),
    args=(ARCHIVE, OUTPUT),
)


@report_errors
def count(args: Namespace) -> None:
    print("noise")
    show(args.output, {"topics": len(find_archive(args.archive).source.topics)}, [])

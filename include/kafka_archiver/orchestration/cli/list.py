"""`airflow archive list`: the archives of the folder."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.orchestration.cli.completion import ANSWER
from kafka_archiver.orchestration.terminal.options import OUTPUT
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, print_answer

if TYPE_CHECKING:
    from kafka_archiver.config.archives import ArchiveSummary

LIST = ActionCommand(
    name="list",
    help="The archives, their DAGs and their files",
    description=f"""\
List the archives in the folder of YAML files (ARCHIVER_CONFIG_DIR). Errors in other files go to stderr.

json and yaml: a list of {{archive, dag_id, topics (null with a pattern), pattern (null with topics), group, store,
schedule (null: by hand only), timezone, file}}.
{ANSWER}""",
    func=lazy_load_command(f"{__name__}.list_archives"),
    args=(OUTPUT,),
)


@print_answer
def list_archives(args: Namespace) -> Answer:  # noqa: ARG001 - every command is given them
    """List what is archived where, and when; also archives whose file is wrong or gone, as Airflow has kept them."""
    from kafka_archiver.config.archives import ArchiveSummary, read_archives
    from kafka_archiver.orchestration.folder import config_folder
    from kafka_archiver.orchestration.metadata.undeclared import undeclared_archives

    archives = read_archives(config_folder())
    summaries = [ArchiveSummary.of(archive, archives.files[name]) for name, archive in archives.valid.items()]
    undeclared = undeclared_archives(archives)
    summaries += [ArchiveSummary.of(u.archive, Path(u.archive.file), u.fault) for u in undeclared.values()]
    summaries.sort(key=lambda summary: summary.archive)
    columns = ["archive", "dag id", "topics", "store", "schedule", "file"]
    rows = [
        [entry.archive, entry.dag_id, _topics(entry), entry.store, entry.schedule, entry.file] for entry in summaries
    ]
    if undeclared:
        columns.append("state")
        rows = [
            [*row, Red("does not run") if entry.error else "ok"] for row, entry in zip(rows, summaries, strict=True)
        ]
    failures = [
        *map(str, archives.errors),
        *(f"{name}: {entry.fault}" for name, entry in undeclared.items() if entry.is_gone),
    ]
    return Answer([summary.model_dump() for summary in summaries], [Table(columns, rows)], failures)


def _topics(summary: ArchiveSummary) -> str:
    return ", ".join(summary.topics or ()) or f"/{summary.pattern}/"

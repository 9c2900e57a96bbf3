"""`airflow archive list`: the archives of the folder."""

from argparse import Namespace
from pathlib import Path

from kafka_archiver.config.archives import ArchiveSummary, config_folder, read_archives
from kafka_archiver.orchestration.metadata.former import undeclared_archives
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, print_answer


@print_answer
def list_archives(args: Namespace) -> Answer:  # noqa: ARG001 - every command is given them
    """List what is archived where, and when; also archives whose file is wrong or gone, as Airflow has kept them."""
    archives = read_archives(config_folder())
    summaries = [ArchiveSummary.of(archive, archives.files[name]) for name, archive in archives.found.items()]
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

"""`airflow archive list`: the archives of the folder."""

from argparse import Namespace
from pathlib import Path

from kafka_archiver.config.archives import ArchiveSummary, config_folder, read_archives
from kafka_archiver.orchestration.metadata.former import former
from kafka_archiver.orchestration.terminal.output import Answer, Red, Table, answering


@answering
def list_archives(args: Namespace) -> Answer:  # noqa: ARG001 - every command is given them
    """List what is archived where, and when; also archives whose file is wrong or gone, as Airflow has kept them."""
    archives = read_archives(config_folder())
    found = [ArchiveSummary.of(archive, archives.files[name]) for name, archive in archives.valid.items()]
    known = former(archives)
    found += [ArchiveSummary.of(one.archive, Path(one.archive.file), one.fault) for one in known.values()]
    found.sort(key=lambda one: one.archive)
    columns = ["archive", "dag id", "topics", "store", "schedule", "file"]
    rows = [[one.archive, one.dag_id, _topics(one), one.store, one.schedule, one.file] for one in found]
    if known:
        columns.append("state")
        rows = [[*row, Red("does not run") if one.error else "ok"] for row, one in zip(rows, found, strict=True)]
    failures = [*map(str, archives.errors), *(f"{name}: {one.fault}" for name, one in known.items() if one.is_gone)]
    return Answer([one.model_dump() for one in found], [Table(columns, rows)], failures)


def _topics(one: ArchiveSummary) -> str:
    return ", ".join(one.topics or ()) or f"/{one.pattern}/"

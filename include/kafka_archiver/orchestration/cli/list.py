"""`airflow archive list`: the archives of the folder."""

from argparse import Namespace

from kafka_archiver.orchestration.terminal.output import Answer, Table, answering
from kafka_archiver.steps.archives import ArchiveSummary, config_folder, read_archives


@answering
def list_archives(args: Namespace) -> Answer:  # noqa: ARG001 - every command is given them
    """What is archived where, and when."""
    archives = read_archives(config_folder())
    found = [ArchiveSummary.of(archive, archives.files[name]) for name, archive in archives.found.items()]
    rows = [(one.archive, one.dag_id, _topics(one), one.store, one.schedule, one.file) for one in found]
    table = Table(("archive", "dag id", "topics", "store", "schedule", "file"), rows)
    return Answer([one.model_dump() for one in found], [table], [str(error) for error in archives.errors])


def _topics(one: ArchiveSummary) -> str:
    return ", ".join(one.topics or ()) or f"/{one.pattern}/"

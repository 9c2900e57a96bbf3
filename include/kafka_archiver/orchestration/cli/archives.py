"""`airflow archive list`: the archives of the folder."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from kafka_archiver.config import Archive, archive_files, load_archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.archives import config_folder, read_archives
from kafka_archiver.orchestration.dags import dag_id
from kafka_archiver.orchestration.terminal.output import Answer, Table, answering


@answering
def list_archives(args: Namespace) -> Answer:  # noqa: ARG001 - every command is given them
    """What is archived where, and when."""
    archives, errors = read_archives(config_folder())
    files = _files() if archives else {}
    found = [_describe(archive, files[name]) for name, archive in archives.items()]
    rows = [
        (f["archive"], f["dag_id"], _topics(archive), f["store"], f["schedule"], f["file"])
        for f, archive in zip(found, archives.values(), strict=True)
    ]
    table = Table(("archive", "dag id", "topics", "store", "schedule", "file"), rows)
    return Answer(found, [table], [str(error) for error in errors])


def _files() -> dict[str, Path]:
    """The file of each archive; of two with one name, the one that is called like it."""
    found: dict[str, Path] = {}
    for file in archive_files(config_folder()):
        try:
            name = load_archive(file).archive
        except ConfigError:
            continue
        if name not in found or file.stem == name:
            found[name] = file
    return found


def _describe(archive: Archive, file: Path) -> dict[str, Any]:
    return {
        "archive": archive.archive,
        "dag_id": dag_id(archive),
        "topics": archive.source.topics,
        "pattern": archive.source.pattern,
        "group": archive.group,
        "store": archive.store.url,
        "schedule": archive.schedule,
        "timezone": archive.timezone,
        "file": str(file),
    }


def _topics(archive: Archive) -> str:
    return ", ".join(archive.source.topics or ()) or f"/{archive.source.pattern}/"

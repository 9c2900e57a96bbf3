"""`airflow archive status`: how far each archive is, and how far behind."""

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from kafka_archiver.documents import isoformat
from kafka_archiver.errors import ArchiverError
from kafka_archiver.orchestration.archives import config_folder, read_archives
from kafka_archiver.orchestration.cli.find import find_archive, open_archive
from kafka_archiver.orchestration.cli.output import Answer, Table, answering
from kafka_archiver.steps.status import ArchiveStatus, status


@answering
def show_status(args: Namespace) -> Answer:
    """The status of one archive, or of all: one that does not answer is no reason not to show the others."""
    if args.archive:
        found, failures = [status(open_archive(find_archive(args.archive)))], []
    else:
        archives, errors = read_archives(config_folder())
        found, failures = [], [str(error) for error in errors]
        for archive in archives.values():
            try:
                found.append(status(open_archive(archive)))
            except ArchiverError as error:
                failures.append(f"{archive.archive}: {error}")
    return Answer([_document(one) for one in found], [_table(one) for one in found], failures)


def _document(one: ArchiveStatus) -> dict[str, Any]:
    return {**one.model_dump(), "lag": one.lag, "oldest_unarchived": one.oldest_unarchived}


def _table(one: ArchiveStatus) -> Table:
    columns = ("topic", "partition", "committed", "archived to", "log start", "log end", "lag", "oldest unarchived")
    rows = [
        (p.topic, p.partition, p.committed, p.archived_to, p.log_start, p.log_end, p.lag, p.oldest_unarchived)
        for p in one.partitions
    ]
    return Table(columns, rows, f"{one.archive}: {', '.join(_summary(one))}")


def _summary(one: ArchiveStatus) -> Iterator[str]:
    oldest = f", the oldest of {isoformat(one.oldest_unarchived)}" if one.oldest_unarchived else ""
    yield f"lag {one.lag:,}{oldest}"
    if one.last_commit:
        yield f"last commit {isoformat(one.last_commit.committed_at)} (run {one.last_commit.run})"
    else:
        yield "nothing committed yet"
    yield f"closed until {isoformat(one.closed_until)}" if one.closed_until else "no hour closed yet"
    if one.unfinished:
        yield f"unfinished: {', '.join(one.unfinished)}"

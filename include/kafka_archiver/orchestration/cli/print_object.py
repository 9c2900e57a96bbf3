"""`airflow archive print`: the records of one object, for people and for other programs."""

from __future__ import annotations

import shutil
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from airflow.cli.cli_config import ActionCommand, lazy_load_command

from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.orchestration.terminal.options import option
from kafka_archiver.orchestration.terminal.output import report_errors
from kafka_archiver.orchestration.terminal.stdout import data_stream

if TYPE_CHECKING:
    from kafka_archiver.config import Archive
    from kafka_archiver.encryption.opened import FindKey
    from kafka_archiver.model.data_keys import DataKey
    from kafka_archiver.model.manifest import ObjectEntry
    from kafka_archiver.reader.chunks import Written

PRINT = ActionCommand(
    name="print",
    help="The records of one object as JSON lines",
    description="""\
Print the records of an object in any format of the archiver, each as a line of JSON: topic, partition, offset,
timestamp, timestamp_type, key, value, headers, as `format: jsonl` writes them; what a format does not keep is -1, empty
or null. Of an object with decoded columns, print all its columns; of values alone, each value as it is.

An s3:// URL is below the store.url of an archive, whose credentials are taken. If the archive's ledger has the object,
it is read by its plan, or as it was adopted, and compared with its checksum before anything is printed. Of any other
object, and of a local file, the format is known by the extension and the columns by the file: a CSV file needs its
header, and its columns are text; JSON lines are printed as they are.

The exit code is 0, or 1 with the reason on stderr: after damage, some records may have been printed.""",
    func=lazy_load_command(f"{__name__}.print_object"),
    args=(
        option("object", metavar="FILE|URL", help="A local file, or s3://bucket/key"),
        option(
            "--content",
            choices=("record", "value"),
            default="record",
            help="value: of a local CSV file with the column `value` alone, print each value as it is.\n"
            "No other file needs it (default: record, all columns that the file has)",
        ),
    ),
)

DECRYPT = ActionCommand(
    name="decrypt",
    help="The content of one encrypted object, as its format has it",
    description="""\
Write the content of an object that was encrypted before it was sent (store.encryption: {client: …}) to the standard
output, as in: airflow archive decrypt s3://…/orders+0+00000000000000000000.parquet.enc > orders.parquet

The object: an s3:// URL below an archive's store.url, or a local file. Its data key is in the ledger of the archive
that wrote it, and that archive's connection has the master key.

The exit code is 0, or 1 if the object is damaged or its key is not known; what was written until then is not all.""",
    func=lazy_load_command(f"{__name__}.decrypt"),
    args=(option("object", metavar="OBJECT", help="An s3:// URL, or a local file"),),
)


@report_errors
def print_object(args: Namespace) -> None:
    """Print the records as JSON lines: by the plan that wrote the object, or by what its file says."""
    from kafka_archiver.context.print_object import lines
    from kafka_archiver.reader.chunks import written_lines

    out = data_stream().buffer
    by_plan = _by_plan(args.object)
    if by_plan:
        out.writelines(written_lines(*by_plan))
        return
    adopted = _adopted_lines(args.object)
    if adopted:
        out.writelines(adopted)
        return
    with _opened(args.object) as source:
        out.writelines(lines(args.object, source, args.content == "value"))


@report_errors
def decrypt(args: Namespace) -> None:
    """Write the content of an encrypted object."""
    from kafka_archiver.model.object_keys import SEALED

    if not args.object.endswith(SEALED):
        raise ConfigError(f"{args.object} is not encrypted by the archiver: expected a name that ends in {SEALED}")
    with _opened(args.object) as source:
        shutil.copyfileobj(source, data_stream().buffer, 1 << 20)


def _key_of(own: Archive | None) -> FindKey:
    """Return what finds a data key: in the object's own archive first, and then in each other one that can be asked."""
    from kafka_archiver.config.archives import read_archives
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.orchestration.folder import config_folder

    def find_key(key_id: str) -> DataKey:
        archives = [archive for archive in read_archives(config_folder()).valid.values() if archive != own]
        problems: list[str] = []
        for archive in [*([own] if own else []), *archives]:
            if archive.store.encryption.client is None:
                continue
            try:
                ledger = open_ledger(archive)
                if ledger.has_data_key(key_id):
                    return ledger.open_key(key_id)
            except ArchiverError as error:
                if archive == own:
                    raise
                problems.append(f"{archive.archive}: {error}")
        asked = f". Not asked, because of an error: {'; '.join(problems)}" if problems else ""
        raise ConfigError(
            f"no archive with `store.encryption: {{client: …}}` has data key {key_id} in its ledger: expected the "
            f"archive that wrote the object among those that `airflow archive list` shows{asked}"
        )

    return find_key


def _by_plan(name: str) -> tuple[Written, ObjectEntry] | None:
    """Return the run and the entry of an object of an archive; None: no archive has it in its ledger."""
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.reader.chunks import written_at

    for archive, key in _places(name):
        written = written_at(open_ledger(archive), key)
        if written:
            return written
    return None


def _adopted_lines(name: str) -> Iterator[bytes] | None:
    """Return the lines of an object that another tool wrote; None: no archive has adopted it."""
    from kafka_archiver.orchestration.connections import open_ledger
    from kafka_archiver.reader.adopted import adopted_object, object_rows
    from kafka_archiver.reader.lookup import json_lines
    from kafka_archiver.values.ranges import TopicPartition

    for archive, key in _places(name):
        ledger = open_ledger(archive)
        item = adopted_object(ledger, key)
        if item:
            place = TopicPartition(item.topic, item.partition)
            return (json_lines(batch, place) for batch in object_rows(ledger, item))
    return None


def _places(name: str) -> Iterator[tuple[Archive, str]]:
    """Yield the archives below whose store.url an object is, with its key there."""
    from kafka_archiver.config.archives import read_archives
    from kafka_archiver.orchestration.folder import config_folder

    for archive in read_archives(config_folder()).valid.values():
        url = archive.store.url.rstrip("/") + "/"
        if name.startswith(url):
            yield archive, name.removeprefix(url)


def _opened(name: str) -> BinaryIO:
    from kafka_archiver.context.print_object import from_file, from_store
    from kafka_archiver.orchestration.connections import open_store

    if "://" not in name:
        return from_file(Path(name), _key_of(None))
    for archive, key in _places(name):
        return from_store(open_store(archive), key, _key_of(archive))
    raise ConfigError(
        f"{name} is below no archive's store.url (`airflow archive list` shows them): download the object"
    )

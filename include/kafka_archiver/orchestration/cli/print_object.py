"""`airflow archive print`: the records of one object, for people and for other programs."""

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import BinaryIO

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import config_folder, read_archives
from kafka_archiver.context.print_object import from_file, from_store, lines
from kafka_archiver.encryption.opened import FindKey
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.model.data_keys import DataKey
from kafka_archiver.model.keys import SEALED
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.orchestration.connections import open_ledger, open_store
from kafka_archiver.orchestration.terminal.failures import plainly
from kafka_archiver.reader import by_key
from kafka_archiver.reader.chunks import Written


@plainly
def print_object(args: Namespace) -> None:
    """Print the records as JSON lines: by the plan that wrote the object, or by what its file says."""
    with data_out() as out:
        by_plan = _by_plan(args.object)
        if by_plan:
            out.writelines(by_key.lines(*by_plan))
            return
        with _opened(args.object) as source:
            out.writelines(lines(args.object, source, args.content == "value"))


@plainly
def decrypt(args: Namespace) -> None:
    """Write the content of an encrypted object."""
    if not args.object.endswith(SEALED):
        raise ConfigError(f"{args.object} is not encrypted by the archiver: expected a name that ends in {SEALED}")
    with data_out() as out, _opened(args.object) as source:
        shutil.copyfileobj(source, out, 1 << 20)


@contextmanager
def data_out() -> Iterator[BinaryIO]:
    """Give standard output for data alone: what any logger writes to it meanwhile goes to standard error.

    The amazon provider logs there where credentials come from, at any request.
    """
    out = sys.stdout.buffer
    try:
        with redirect_stdout(sys.stderr):
            yield out
        sys.stdout.flush()
    except BrokenPipeError:
        # As after `| head`. The interpreter flushes stdout once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _key_of(own: Archive | None) -> FindKey:
    """Return what finds a data key: in the object's own archive first, and then in each other one that can be asked."""

    def find(key_id: str) -> DataKey:
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

    return find


def _by_plan(name: str) -> tuple[Written, ObjectEntry] | None:
    """Return the run and the entry of an object of an archive; None: no archive has it in its ledger."""
    for archive, key in _places(name):
        written = by_key.written_at(open_ledger(archive), key)
        if written:
            return written
    return None


def _places(name: str) -> Iterator[tuple[Archive, str]]:
    """Yield the archives below whose store.url an object is, with its key there."""
    for archive in read_archives(config_folder()).valid.values():
        url = archive.store.url.rstrip("/") + "/"
        if name.startswith(url):
            yield archive, name.removeprefix(url)


def _opened(name: str) -> BinaryIO:
    if "://" not in name:
        return from_file(Path(name), _key_of(None))
    for archive, key in _places(name):
        return from_store(open_store(archive), key, _key_of(archive))
    raise ConfigError(
        f"{name} is below no archive's store.url (`airflow archive list` shows them): download the object"
    )

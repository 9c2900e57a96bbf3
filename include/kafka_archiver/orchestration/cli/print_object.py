"""`airflow archive print`: the records of one object, for people and for other programs."""

import os
import shutil
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path
from typing import BinaryIO

from kafka_archiver.data_keys import DataKey
from kafka_archiver.errors import ConfigError
from kafka_archiver.keys import SEALED
from kafka_archiver.orchestration.connections import open_ledger, open_store
from kafka_archiver.orchestration.terminal.failures import plainly
from kafka_archiver.steps.archives import config_folder, read_archives
from kafka_archiver.steps.print_object import from_file, from_store, lines


@plainly
def print_object(args: Namespace) -> None:
    """Print the records as JSON lines."""
    try:
        with _opened(args.object) as source:
            for line in lines(args.object, source, args.content == "value"):
                sys.stdout.buffer.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # As after `| head`. The interpreter flushes stdout once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@plainly
def decrypt(args: Namespace) -> None:
    """Write the content of an encrypted object."""
    if not args.object.endswith(SEALED):
        raise ConfigError(f"{args.object} is not encrypted by the archiver: expected a name that ends in {SEALED}")
    try:
        with _opened(args.object) as source:
            shutil.copyfileobj(source, sys.stdout.buffer, 1 << 20)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _any_key(key_id: str) -> DataKey:
    """The data key, by whichever archive has it."""
    for archive in read_archives(config_folder()).found.values():
        if archive.store.encryption.client:
            ledger = open_ledger(archive)
            if ledger.has_data_key(key_id):
                return ledger.open_key(key_id)
    raise ConfigError(
        f"no archive with `store.encryption: {{client: …}}` has data key {key_id} in its ledger: expected the archive "
        "that wrote the object among those that `airflow archive list` shows"
    )


def _opened(name: str) -> BinaryIO:
    # The amazon provider logs to stdout where credentials come from.
    with redirect_stdout(sys.stderr):
        return _found(name)


def _found(name: str) -> BinaryIO:
    if "://" not in name:
        return from_file(Path(name), _any_key)
    for archive in read_archives(config_folder()).found.values():
        url = archive.store.url.rstrip("/") + "/"
        if name.startswith(url):
            return from_store(open_store(archive), name.removeprefix(url), _any_key)
    raise ConfigError(
        f"{name} is below no archive's store.url (`airflow archive list` shows them): download the object"
    )

"""`airflow archive print`: the records of one object, for people and for other programs."""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import BinaryIO

from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.connections import open_store
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


def _opened(name: str) -> BinaryIO:
    if "://" not in name:
        return from_file(Path(name))
    for archive in read_archives(config_folder()).found.values():
        url = archive.store.url.rstrip("/") + "/"
        if name.startswith(url):
            return from_store(open_store(archive), name.removeprefix(url))
    raise ConfigError(
        f"{name} is below no archive's store.url (`airflow archive list` shows them): download the object"
    )

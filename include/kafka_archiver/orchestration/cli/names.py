"""The archives and runs that a command names."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from kafka_archiver.config import Archive
from kafka_archiver.config.archives import read_archives
from kafka_archiver.messages.errors import ArchiverError, ConfigError
from kafka_archiver.model.object_keys import run_name, split_run
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.orchestration.terminal.options import moment
from kafka_archiver.values.intervals import run_id

Result = TypeVar("Result")


def find_archive(name: str) -> Archive:
    """Return an archive by name. Raises ConfigError, which lists the names that exist and the errors of other files."""
    archives, _, errors = read_archives(config_folder())
    if name in archives:
        return archives[name]
    missing = f"No archive {name!r} in {config_folder()}; found: {', '.join(archives) or 'none'}."
    raise ConfigError("\n".join([missing, *map(str, errors)]))


def ask_each(
    names: Sequence[str], ask: Callable[[Archive], Result], more: Mapping[str, Archive] | None = None
) -> tuple[list[Result], list[str]]:
    """Call `ask` for these archives, or for all; returns the results and the errors.

    :param more: archives that no valid file declares.
    :raises ArchiverError: for a single name, or an unknown one. Else an error must not hide the other archives.
    """
    declared, _, errors = read_archives(config_folder())
    archives = {**declared, **(more or {})}
    chosen = [archives.get(name) or find_archive(name) for name in dict.fromkeys(names)] or [*archives.values()]
    results, failures = [], [] if names else [str(error) for error in errors]
    for archive in chosen:
        try:
            results.append(ask(archive))
        except ArchiverError as error:
            if len(chosen) == 1 and names:
                raise
            failures.append(f"{archive.archive}: {error}")
    return results, failures


def run_name_of(text: str) -> str:
    """Return the ledger's name of a run.

    :param text: this name, the start of the run's interval, or `last`, which is returned as it is.
    :raises ConfigError: `text` is none of these.
    """
    if text == "last":
        return text
    try:
        start, revision = _split(text)
    except ArgumentTypeError as error:
        raise ConfigError(f"RUN: {error}; a run's name like 20261121T050000Z or `last` will do too.") from None
    return run_name(run_id(start), revision)


def _split(text: str) -> tuple[datetime, int]:
    try:
        return split_run(text)
    except ValueError:
        return moment(text), 0

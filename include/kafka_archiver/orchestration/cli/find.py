"""Find the archives that a command names."""

from collections.abc import Callable
from typing import TypeVar

from kafka_archiver.config import Archive
from kafka_archiver.errors import ArchiverError, ConfigError
from kafka_archiver.steps.archives import config_folder, read_archives

Found = TypeVar("Found")


def find_archive(name: str) -> Archive:
    """The archive of that name. Raises ConfigError, which lists the names that exist and the errors of other files."""
    archives, _, errors = read_archives(config_folder())
    if name in archives:
        return archives[name]
    missing = f"No archive {name!r} in {config_folder()}; found: {', '.join(archives) or 'none'}."
    raise ConfigError("\n".join([missing, *map(str, errors)]))


def ask_each(name: str | None, ask: Callable[[Archive], Found]) -> tuple[list[Found], list[str]]:
    """Call `ask` for one archive or for all; returns the results and the errors.

    :raises ArchiverError: for the one archive. Among all, an error must not hide the other archives.
    """
    if name:
        return [ask(find_archive(name))], []
    archives, _, errors = read_archives(config_folder())
    found, failures = [], [str(error) for error in errors]
    for archive in archives.values():
        try:
            found.append(ask(archive))
        except ArchiverError as error:
            failures.append(f"{archive.archive}: {error}")
    return found, failures

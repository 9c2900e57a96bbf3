"""The archives that a command is about."""

from collections.abc import Callable
from typing import TypeVar

from kafka_archiver.config import Archive
from kafka_archiver.errors import ArchiverError, ConfigError
from kafka_archiver.steps.archives import config_folder, read_archives

Found = TypeVar("Found")


def find_archive(name: str) -> Archive:
    """The archive of that name. Raises ConfigError, which lists those there are."""
    archives, _, errors = read_archives(config_folder())
    if name in archives:
        return archives[name]
    hint = f" Files with problems: {len(errors)}; see `airflow archive validate`." if errors else ""
    raise ConfigError(f"No archive {name!r} in {config_folder()}; found: {', '.join(archives) or 'none'}.{hint}")


def ask_each(name: str | None, ask: Callable[[Archive], Found]) -> tuple[list[Found], list[str]]:
    """What `ask` finds out about one archive, or about all, and what went wrong.

    One of several that does not answer is no reason not to show the others; of one alone the error is raised.
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

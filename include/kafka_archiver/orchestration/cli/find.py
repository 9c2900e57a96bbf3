"""From the name of an archive to the archive with its brokers, its store and its ledger."""

from kafka_archiver.config import Archive
from kafka_archiver.errors import ConfigError
from kafka_archiver.orchestration.archives import config_folder, read_archives
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.steps.context import Context


def find_archive(name: str) -> Archive:
    """The archive of that name. Raises ConfigError, which lists those there are."""
    archives, errors = read_archives(config_folder())
    if name in archives:
        return archives[name]
    hint = f" Files with problems: {len(errors)}; see `airflow archive validate`." if errors else ""
    raise ConfigError(f"No archive {name!r} in {config_folder()}; found: {', '.join(archives) or 'none'}.{hint}")


def open_archive(archive: Archive) -> Context:
    """The archive with its connections; nothing is asked of the brokers or the store yet. Raises ConfigError."""
    return Context.open(archive, endpoints(archive))

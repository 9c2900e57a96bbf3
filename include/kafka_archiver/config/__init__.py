"""The YAML of an archive. Every key but `archive`, `source.topics` and `store.url` has a default.

:func:`load_archive` reads a file, :func:`declarations` finds the files of a folder and the archives that environment
variables describe; both raise :class:`~kafka_archiver.messages.errors.ConfigError`.
"""

from kafka_archiver.config.archive import Archive, Policies, Spark
from kafka_archiver.config.declarations import Declaration, declarations
from kafka_archiver.config.load import archive_files, load_archive, parse_archive

__all__ = [
    "Archive",
    "Declaration",
    "Policies",
    "Spark",
    "archive_files",
    "declarations",
    "load_archive",
    "parse_archive",
]

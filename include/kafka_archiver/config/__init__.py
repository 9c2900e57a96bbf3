"""The YAML of an archive. Every key but `archive`, `source.topics` and `store.url` has a default.

:func:`load_archive` reads a file, :func:`archive_files` finds those of a folder; both raise
:class:`~kafka_archiver.errors.ConfigError`.
"""

from kafka_archiver.config.archive import Archive
from kafka_archiver.config.load import archive_files, load_archive, parse_archive
from kafka_archiver.config.policies import Policies
from kafka_archiver.config.spark import Spark

__all__ = ["Archive", "Policies", "Spark", "archive_files", "load_archive", "parse_archive"]

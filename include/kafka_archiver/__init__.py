"""Kafka topics copied to an object store, exactly once, filed by hour, with a proof of completeness.

`open_archive` reads an archive in a program: see docs/READING.md.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_archiver.reader.archive import ArchiveReader

__all__ = ["__version__", "open_archive"]
__version__ = "0.5.0"


def open_archive(
    url: str,
    archive: str,
    options: Mapping[str, str] | None = None,
    master_keys: Mapping[str, str] | None = None,
) -> "ArchiveReader":
    """Open an archive to read it; see `reader.archive.open_archive`."""
    # Imported late: every process of Airflow imports this package.
    from kafka_archiver.reader import archive as reader

    return reader.open_archive(url, archive, options, master_keys)

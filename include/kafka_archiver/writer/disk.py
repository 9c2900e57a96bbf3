"""The local disk that takes what memory must not hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka_archiver.errors import TransientError


@contextmanager
def working_directory(parent: Path | None) -> Iterator[Path]:
    """A directory for one task's temporary files, removed at the end with all that is in it."""
    with disk(parent):
        directory = TemporaryDirectory(prefix="kafka-archiver-", dir=parent, ignore_cleanup_errors=True)
    with directory as name:
        yield Path(name)


@contextmanager
def disk(directory: Path | None) -> Iterator[None]:
    """Around everything that touches temporary files: says which disk failed, and what to do."""
    try:
        yield
    except OSError as error:
        raise TransientError(
            f"Temporary files in {directory or 'the temporary directory'} failed: {error}. "
            "Make room there, or set another spill directory."
        ) from error

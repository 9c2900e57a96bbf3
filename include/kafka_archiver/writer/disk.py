"""The local disk that takes what memory must not hold."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from kafka_archiver.errors import TransientError

_PREFIX = "kafka-archiver-task-"


@contextmanager
def working_directory(parent: Path | None) -> Iterator[Path]:
    """A directory for one task's temporary files, removed at the end with all that is in it.

    A task that was killed removes nothing, so each new one first removes what the dead have left in `parent`.
    """
    with held_directory(parent) as (directory, _):
        yield directory


@contextmanager
def held_directory(parent: Path | None) -> Iterator[tuple[Path, int]]:
    """The same, with the lock on it: nobody sweeps the directory while a process lives that has inherited the lock."""
    sweep(parent)
    with disk(parent):
        directory, lock = _locked(parent)
    try:
        yield directory, lock
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def abandoned(parent: Path | None) -> list[Path]:
    """The directories that killed tasks have left in `parent`."""
    return _dead(parent, remove=False)


def sweep(parent: Path | None) -> list[Path]:
    """Remove the directories that killed tasks have left in `parent`; says which. What fails is left for the next."""
    return _dead(parent, remove=True)


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


def _locked(parent: Path | None) -> tuple[Path, int]:
    """A new directory, and the lock on it.

    The kernel drops the lock with the process, however that ends. A process id in the name would say less: it means
    another process, or none, in another container that has the same disk.
    """
    while True:
        directory = Path(mkdtemp(prefix=_PREFIX, dir=parent))
        # Another task's sweep may come between, and then has the lock or has removed the directory.
        with suppress(FileNotFoundError, BlockingIOError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                _lock(lock)
                directory.stat()
            except BaseException:
                os.close(lock)
                raise
            return directory, lock


def _lock(descriptor: int) -> None:
    """:raises BlockingIOError: another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # A file system without locks: then the sweep cannot have one either, and leaves everything alone.
        pass


def _dead(parent: Path | None, remove: bool) -> list[Path]:
    found = []
    for directory in sorted(Path(parent or gettempdir()).glob(f"{_PREFIX}*")):
        # Not ours, gone meanwhile, or locked by a task that lives.
        with suppress(OSError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if remove:
                    shutil.rmtree(directory)
                found.append(directory)
            finally:
                os.close(lock)
    return found

"""Temporary files on local disk, for data that exceeds the memory limit."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from kafka_archiver.messages.errors import TransientError

_PREFIX = "kafka-archiver-task-"


@contextmanager
def working_directory(parent: Path | None) -> Iterator[Path]:
    """A directory for one task's temporary files, removed with its contents at the end.

    A killed task removes nothing, so each new task first removes the directories of dead tasks in `parent`.
    """
    with locked_directory(parent) as (directory, _):
        yield directory


class LateDirectory:
    """A working directory that is made when something first asks for its path: most chunks fit in memory."""

    def __init__(self, parent: Path | None) -> None:
        self._parent = parent
        self._path: Path | None = None
        self._until_closed = ExitStack()

    @property
    def path(self) -> Path:
        if self._path is None:
            self._path = self._until_closed.enter_context(working_directory(self._parent))
        return self._path

    def close(self) -> None:
        """Remove it with its contents."""
        self._until_closed.close()


@contextmanager
def locked_directory(parent: Path | None) -> Iterator[tuple[Path, int]]:
    """The same, with the lock's file descriptor. `sweep` skips the directory while any process holds the descriptor."""
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
    """Remove the directories that killed tasks have left in `parent`, and return them. Failures are ignored."""
    return _dead(parent, remove=True)


@contextmanager
def disk(directory: Path | None) -> Iterator[None]:
    """Turn an OSError on temporary files into a TransientError that names the directory and what to do."""
    try:
        yield
    except OSError as error:
        raise TransientError(
            f"Temporary files in {directory or 'the temporary directory'} failed: {error}. "
            "Free space there, or set another spill directory."
        ) from error


def _locked(parent: Path | None) -> tuple[Path, int]:
    """A new directory, and the lock on it.

    The kernel releases the lock when the process ends, for any reason. A process id in the directory's name would not
    do: containers may share the disk, and a process id means another process in each.
    """
    while True:
        directory = Path(mkdtemp(prefix=_PREFIX, dir=parent))
        # Meanwhile another task's sweep may lock or remove the directory: then try again.
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
    """:raises BlockingIOError: another process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # The file system has no locks: then `sweep` cannot lock a directory either, and removes nothing.
        pass


def _dead(parent: Path | None, remove: bool) -> list[Path]:
    dead_directories = []
    for directory in sorted(Path(parent or gettempdir()).glob(f"{_PREFIX}*")):
        # An OSError: not our directory, already removed, or locked by a live task.
        with suppress(OSError):
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if remove:
                    shutil.rmtree(directory)
                dead_directories.append(directory)
            finally:
                os.close(lock)
    return dead_directories

"""Records on their way past Spark: the reader of a task leaves them here, and its writer takes them.

Reader and writer are two Python processes of one Spark task, with Spark's SQL between them. Spark gets only what its
expressions need, and may drop rows; whole records stay on the task's disk, in segments that the writer removes.
"""

import fcntl
import os
import pickle
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

import pyarrow as pa

from kafka_archiver.messages.errors import ArchiverError, Failure
from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.writer.disk import disk

_PREFIX = "kafka-archiver-spool-"
_END = "end"
# Of the writer, once it is there.
_TAKEN = "taken"
# How long a reader's segments wait for a writer that may not have started yet.
_WAIT_SECONDS = 3600
# Locks of this process, until its next task: the other process may not have its own yet.
_locks: list[int] = []


class Segment(NamedTuple):
    """Records of a chunk, the `number`th of its plan.

    `sent`: how many of them Spark got. `unfit`: the offsets of those that it cannot have.
    """

    number: int
    chunk: Chunk
    records: pa.RecordBatch
    sent: int
    unfit: list[int]


class Spool:
    """The records of one attempt of a task. :param name: the same in both processes, and no other attempt's."""

    def __init__(self, name: str) -> None:
        self._folder = Path(gettempdir()) / f"{_PREFIX}{name}"
        self._next = 0
        with disk(self._folder.parent):
            while _locks:
                os.close(_locks.pop())
            while not _locks:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                # Meanwhile another task's sweep may remove the folder: then try again.
                with suppress(FileNotFoundError):
                    lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_SH)
                        if os.path.samestat(os.fstat(lock), self._folder.stat()):
                            _locks.append(lock)
                    finally:
                        if lock not in _locks:
                            os.close(lock)

    def write(self, segment: Segment) -> None:
        """Leave a segment. Call it before Spark gets a row of it."""
        about = pickle.dumps((segment.number, segment.chunk.model_dump_json(), segment.sent, segment.unfit))
        with disk(self._folder):
            path = self._folder / "new"
            schema = segment.records.schema.with_metadata({"about": about})
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                writer.write_batch(segment.records.replace_schema_metadata({"about": about}))
            path.rename(self._folder / f"{self._next:08}")
        self._next += 1

    def end(self, failure: ArchiverError | None = None) -> None:
        """Leave the end, also of a reader that failed; nothing if the writer has failed: it removes the folder."""
        with disk(self._folder), suppress(FileNotFoundError):
            (self._folder / "new").write_bytes(pickle.dumps(failure and Failure.of(failure)))
            (self._folder / "new").rename(self._folder / _END)

    def take(self) -> Segment | None:
        """The next segment, if it is there yet.

        :raises ArchiverError: what made the reader fail.
        """
        path = self._folder / f"{self._next:08}"
        with disk(self._folder):
            (self._folder / _TAKEN).touch()
            if not path.exists():
                if (self._folder / _END).exists() and (failed := pickle.loads((self._folder / _END).read_bytes())):
                    raise failed.error()
                return None
            with pa.OSFile(str(path)) as file:
                records = pa.ipc.open_file(file).get_batch(0)
            path.unlink()
        self._next += 1
        number, chunk, sent, unfit = pickle.loads(records.schema.metadata[b"about"])
        return Segment(number, Chunk.model_validate_json(chunk), records.replace_schema_metadata(), sent, unfit)

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def sweep() -> Iterator[Path]:
    """Remove the folders that killed tasks have left."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _waits(folder):
                shutil.rmtree(folder, ignore_errors=True)
                yield folder
        except OSError:
            # A live task has it.
            continue
        finally:
            os.close(lock)


def _waits(folder: Path) -> bool:
    """Return True if the reader has ended, and the writer may be about to start: then nobody has the lock."""
    try:
        return not (folder / _TAKEN).exists() and time.time() - (folder / _END).stat().st_mtime < _WAIT_SECONDS
    except FileNotFoundError:
        return False

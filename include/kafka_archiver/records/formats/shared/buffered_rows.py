"""Rows of the open row group: compact copies in memory, or in a file without a name on disk."""

import mmap
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa


class BufferedRows:
    """Record batches of one schema, in order, each as one Arrow IPC message.

    A message has only the rows of its batch, even if the batch is a slice of larger buffers. The file on disk has the
    same bytes and is read memory-mapped. `memory`: the bytes of memory that the messages take.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._messages: list[pa.Buffer] = []
        self._file: BinaryIO | None = None
        self._file_sizes: list[int] = []
        self.memory = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a copy of these rows."""
        if batch.num_rows:
            message = batch.serialize()
            self._messages.append(message)
            self.memory += message.size

    def spill(self, directory: Path) -> int:
        """Move all rows from memory to disk; return the number of bytes.

        :raises OSError: the disk is full; memory still holds the rows.
        """
        if not self._messages:
            return 0
        self._file = self._file or nameless(directory)
        # Overwrites the bytes that a failed attempt may have left after the last message.
        self._file.seek(sum(self._file_sizes))
        for message in self._messages:
            write_all(self._file, memoryview(message))
        self._file_sizes += [message.size for message in self._messages]
        freed, self._messages, self.memory = self.memory, [], 0
        return freed

    def take(self) -> pa.Table:
        """Return all rows in order, each column as one chunk, and forget them."""
        messages = [*self._spilled(), *self._messages]
        self._messages, self.memory = [], 0
        batches = [pa.ipc.read_record_batch(message, self._schema) for message in messages]
        return pa.Table.from_batches(batches, self._schema).combine_chunks()

    def _spilled(self) -> list[pa.Buffer]:
        if self._file is None or not self._file_sizes:
            return []
        mapped = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        # The mapping keeps the file alive as long as a row refers to it.
        self._file.close()
        sizes, self._file, self._file_sizes = self._file_sizes, None, []
        return [mapped.slice(end - size, size) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def nameless(directory: Path) -> BinaryIO:
    """A file that cannot outlive the process. Unbuffered, so that each write raises its own errors."""
    return tempfile.TemporaryFile(dir=directory, buffering=0)


def write_all(file: BinaryIO, data: memoryview) -> None:
    """Write data to such a file, which may take a part of it at a time."""
    while data:
        data = data[file.write(data) :]

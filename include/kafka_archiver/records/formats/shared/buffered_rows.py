"""Rows of the open row group: in memory, or in a file without a name on disk."""

import mmap
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

# A batch that keeps so many times the bytes of its rows in memory, or fewer, is not copied.
_SPARE = 1.25


class BufferedRows:
    """Record batches of one schema, in order. `memory`: the bytes of memory that they take.

    A batch that is a slice of larger buffers is copied, so that only its rows are kept. The file on disk has each batch
    as one Arrow IPC message, and is read memory-mapped.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._file: BinaryIO | None = None
        self._file_sizes: list[int] = []
        self.memory = 0

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            memory = _memory_of(batch)
            if memory > _SPARE * batch.nbytes:
                message = batch.serialize()
                batch, memory = pa.ipc.read_record_batch(message, self._schema), message.size
            self._batches.append(batch)
            self.memory += memory

    def spill(self, directory: Path) -> int:
        """Move all rows from memory to disk; return the number of bytes.

        :raises OSError: the disk is full; memory still holds the rows.
        """
        if not self._batches:
            return 0
        self._file = self._file or nameless(directory)
        # Overwrites the bytes that a failed attempt may have left after the last message.
        self._file.seek(sum(self._file_sizes))
        sizes = []
        for batch in self._batches:
            message = batch.serialize()
            write_all(self._file, memoryview(message))
            sizes.append(message.size)
        self._file_sizes += sizes
        freed, self._batches, self.memory = self.memory, [], 0
        return freed

    def take(self) -> pa.Table:
        """Return all rows in order, each column as one chunk, and forget them."""
        spilled = [pa.ipc.read_record_batch(message, self._schema) for message in self._spilled()]
        batches, self._batches, self.memory = [*spilled, *self._batches], [], 0
        return pa.Table.from_batches(batches, self._schema).combine_chunks()

    def _spilled(self) -> list[pa.Buffer]:
        if self._file is None or not self._file_sizes:
            return []
        mapped = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        # The mapping keeps the file alive as long as a row refers to it.
        self._file.close()
        sizes, self._file, self._file_sizes = self._file_sizes, None, []
        return [mapped.slice(end - size, size) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _memory_of(batch: pa.RecordBatch) -> int:
    """Return the bytes that stay in memory with a batch: its buffers may be slices of one with other columns, too."""
    sizes: dict[int, int] = {}
    for column in batch.columns:
        for buffer in column.buffers():
            while buffer is not None:
                whole, buffer = buffer, buffer.parent
                if buffer is None:
                    sizes[whole.address] = whole.size
    return sum(sizes.values())


def nameless(directory: Path) -> BinaryIO:
    """A file that cannot outlive the process. Unbuffered, so that each write raises its own errors."""
    return tempfile.TemporaryFile(dir=directory, buffering=0)


def write_all(file: BinaryIO, data: memoryview) -> None:
    """Write data to such a file, which may take a part of it at a time."""
    while data:
        data = data[file.write(data) :]

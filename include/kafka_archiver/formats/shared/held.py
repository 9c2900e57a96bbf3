"""Rows that wait for their row group to end: compact copies in memory, or in a nameless file on disk."""

import mmap
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa


class HeldRows:
    """Record batches of one schema, in order, each as one Arrow IPC message.

    A message holds nothing but the rows of its batch, whatever slice of what buffers the batch was; on disk it is
    the same bytes, read back memory-mapped. `memory` says how many bytes of memory they take.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._messages: list[pa.Buffer] = []
        self._file: BinaryIO | None = None
        self._file_sizes: list[int] = []
        self.memory = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold a copy of these rows."""
        if batch.num_rows:
            message = batch.serialize()
            self._messages.append(message)
            self.memory += message.size

    def spill(self, directory: Path) -> int:
        """Move what memory holds to disk; return how many bytes that were.

        :raises OSError: no room; the rows are still held.
        """
        if not self._messages:
            return 0
        if self._file is None:
            # Nameless, so that it cannot outlive the process. Unbuffered, so that an error is raised here.
            self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115
        # Behind the messages that are there, not behind what a failed attempt may have left.
        self._file.seek(sum(self._file_sizes))
        for message in self._messages:
            _write(self._file, memoryview(message))
        self._file_sizes += [message.size for message in self._messages]
        freed, self._messages, self.memory = self.memory, [], 0
        return freed

    def take(self) -> pa.Table:
        """All rows in order, each column in one piece; nothing is held any more."""
        messages = [*self._spilled(), *self._messages]
        self._messages, self.memory = [], 0
        batches = [pa.ipc.read_record_batch(message, self._schema) for message in messages]
        return pa.Table.from_batches(batches, self._schema).combine_chunks()

    def _spilled(self) -> list[pa.Buffer]:
        if self._file is None or not self._file_sizes:
            return []
        mapped = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))
        # The mapping keeps the file alive for as long as a row is looked at.
        self._file.close()
        sizes, self._file, self._file_sizes = self._file_sizes, None, []
        return [mapped.slice(end - size, size) for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _write(file: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]

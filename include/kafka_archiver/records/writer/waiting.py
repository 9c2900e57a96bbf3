"""Records of parts without an open encoder. They wait on disk until earlier objects are finished.

Each file is sorted by part, then by offset. So the records of consecutive parts are one slice of each file, and the
slices in the order of the files are in offset order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.records.pipeline.base import PART
from kafka_archiver.records.writer.disk import disk
from kafka_archiver.records.writer.split import by_part, starts_of
from kafka_archiver.values.columns import Int64s, column

# Bytes of records that are worth a file of their own.
_LARGE = 1 << 20


class _Run(NamedTuple):
    """A file. The rows of `parts[i]` are [`starts[i]`, `starts[i + 1]`)."""

    path: Path
    parts: Int64s
    starts: Int64s


class Waiting:
    """Takes records of one variant in offset order and returns them by ranges of parts."""

    def __init__(self, directory: Path, run_bytes: int, variant: int = 0) -> None:
        self._directory, self._variant = directory, variant
        self._run_bytes = run_bytes
        self._held: list[pa.RecordBatch] = []
        self.held_bytes = 0
        self._runs: list[_Run] = []

    def add(self, batch: pa.RecordBatch, sorted_: bool = False) -> None:
        """Take records. `sorted_`: they are sorted by part."""
        if sorted_ and batch.nbytes >= min(self._run_bytes, _LARGE):
            # As they are: three copies less in memory.
            self.store()
            self._write(batch, *starts_of(column(batch, PART)))
            return
        if self._held and batch.nbytes >= self._run_bytes:
            # Joined with the large batch they might not fit one array.
            self.store()
        self._held.append(batch)
        self.held_bytes += batch.nbytes
        if self.held_bytes >= self._run_bytes:
            self.store()

    def ranges(self, size: int) -> Iterator[tuple[int, int]]:
        """All parts with waiting records as ranges, ascending. The records of a range have about `size` bytes at most,
        except if it is of one part.
        """
        self.store()
        if not self._runs:
            return
        every = np.concatenate([run.parts for run in self._runs])
        shares = [np.diff(run.starts) * (run.path.stat().st_size / run.starts[-1]) for run in self._runs]
        parts, places = np.unique(every, return_inverse=True)
        sizes = np.bincount(places, np.concatenate(shares))
        first, taken = 0, 0.0
        for number, more in enumerate(sizes.tolist()):
            if number > first and taken + more > size:
                yield int(parts[first]), int(parts[number - 1])
                first, taken = number, 0.0
            taken += more
        yield int(parts[first]), int(parts[-1])

    def read(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The records of the parts from `first` to `last` inclusive; those of each part in offset order."""
        for run in self._runs:
            low, high = run.starts[np.searchsorted(run.parts, [first, last + 1])].tolist()
            if low < high:
                # A copy, so that the file is unmapped: mapped files would count as this process's memory.
                with disk(self._directory), pa.memory_map(str(run.path)) as file:
                    records = pa.concat_batches([pa.ipc.open_file(file).get_batch(0).slice(low, high - low)])
                yield records

    def store(self) -> None:
        """Move what is in memory to disk."""
        if not self._held:
            return
        records, parts, starts = by_part(pa.concat_batches(self._held))
        self._held, self.held_bytes = [], 0
        self._write(records, parts, starts)

    def _write(self, records: pa.RecordBatch, parts: Int64s, starts: Int64s) -> None:
        path = self._directory / f"waiting-{self._variant}-{len(self._runs)}.arrow"
        with disk(path), pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, records.schema) as writer:
            writer.write_batch(records)
        self._runs.append(_Run(path, parts, starts))

"""Records of hours that no encoder is open for: they wait on disk, sorted by hour, until some are.

Each file is sorted by hour and in itself in offset order, so the records of consecutive hours are one slice of each
file, and the slices follow each other as the files do.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kafka_archiver.formats.vectors import Int64s
from kafka_archiver.writer.disk import disk
from kafka_archiver.writer.split import by_hour


class _Run(NamedTuple):
    """A file; the rows of `hours[i]` are those from `starts[i]` up to `starts[i + 1]`."""

    path: Path
    hours: Int64s
    starts: Int64s


class Waiting:
    """Takes records in offset order and gives them back some hours at a time."""

    def __init__(self, directory: Path, run_bytes: int) -> None:
        self._directory = directory
        self._run_bytes = run_bytes
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._runs: list[_Run] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take records."""
        if self._held and batch.nbytes >= self._run_bytes:
            # Together they might be more than one array can hold.
            self._store()
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= self._run_bytes:
            self._store()

    def hours(self) -> list[int]:
        """All hours there are, ascending."""
        if self._held:
            self._store()
        return sorted({hour for run in self._runs for hour in run.hours.tolist()})

    def read(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The records of the hours from `first` up to and including `last`; those of each hour in offset order."""
        for run in self._runs:
            low, high = run.starts[np.searchsorted(run.hours, [first, last + 1])].tolist()
            if low < high:
                # Copied, and the file unmapped: many files held mapped would count as this process's memory.
                with disk(self._directory), pa.memory_map(str(run.path)) as file:
                    records = pa.concat_batches([pa.ipc.open_file(file).get_batch(0).slice(low, high - low)])
                yield records

    def _store(self) -> None:
        records, hours, starts = by_hour(pa.concat_batches(self._held))
        self._held, self._held_bytes = [], 0
        path = self._directory / f"waiting-{len(self._runs)}.arrow"
        with disk(path), pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, records.schema) as writer:
            writer.write_batch(records)
        self._runs.append(_Run(path, hours, starts))

"""The records of a lane, taken a few at a time: to compare them with a log, to send them, and to count them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from kafka_archiver.model.restore_progress import Place, RestoreProgress
from kafka_archiver.work.restore.digests import RunningDigest, payload_bytes
from kafka_archiver.work.restore.lane import Lane, LaneBatch, offsets_of


class Piece(NamedTuple):
    """Records that are sent at once. `size`: their bytes, of keys, values and headers."""

    batch: LaneBatch
    size: int


class LaneRows:
    """The records of a lane from a place on; each is taken once."""

    def __init__(self, lane: Lane, place: Place) -> None:
        self._batches = lane.batches(place)
        self._waiting: LaneBatch | None = None

    def take(self, rows: int) -> Iterator[LaneBatch]:
        """Yield the next records, up to `rows` of them: fewer at the end of the lane."""
        while rows and (batch := self._next()):
            head = batch.sliced(0, rows)
            self._waiting = self._behind(batch, head.records.num_rows)
            rows -= head.records.num_rows
            yield head

    def batches(self) -> Iterator[LaneBatch | None]:
        """Yield the remaining records, as the lane does."""
        return chain([self._waiting] if self._waiting else [], self._batches)

    def _next(self) -> LaneBatch | None:
        if self._waiting is None:
            self._waiting = next((batch for batch in self._batches if batch is not None), None)
        return self._waiting

    @staticmethod
    def _behind(batch: LaneBatch, rows: int) -> LaneBatch | None:
        return batch.sliced(rows) if rows < batch.records.num_rows else None


def cut(batch: LaneBatch, most_rows: int, most_bytes: int) -> Iterator[Piece]:
    """Yield the records of a batch in pieces, each of at most so many records and about so many bytes."""
    ends = np.cumsum(payload_bytes(batch.records))
    start = size = 0
    while start < len(ends):
        fitting = int(np.searchsorted(ends, size + most_bytes, side="right"))
        end = max(start + 1, min(start + most_rows, fitting))
        yield Piece(batch.sliced(start, end - start), int(ends[end - 1]) - size)
        start, size = end, int(ends[end - 1])


def from_place(batch: LaneBatch, place: Place) -> LaneBatch:
    """Return the records of a batch that do not stand before a place."""
    if batch.source != place.source:
        return batch if batch.source > place.source else batch.sliced(batch.records.num_rows)
    return batch.sliced(int(np.searchsorted(offsets_of(batch.records), place.offset)))


def first_place(batch: LaneBatch) -> Place:
    """Return the place of a batch's first record."""
    return Place(batch.source, int(offsets_of(batch.records)[0]))


def last_place(batch: LaneBatch) -> Place:
    """Return the place of a batch's last record."""
    return Place(batch.source, int(offsets_of(batch.records)[-1]))


@dataclass
class Tally:
    """A restore's progress that still grows. `place`: of the next record; the others as of `RestoreProgress`."""

    plan: str
    place: Place
    records: int
    bytes: int
    digest: RunningDigest

    @classmethod
    def of(cls, progress: RestoreProgress) -> Self:
        """Return the tally that goes on behind a progress."""
        return cls(progress.plan, progress.place, progress.records, progress.bytes, RunningDigest(progress.digest))

    def add(self, batch: LaneBatch, size: int) -> None:
        """Add some records of so many bytes."""
        last = last_place(batch)
        self.place = Place(last.source, last.offset + 1)
        self.records += batch.records.num_rows
        self.bytes += size
        self.digest.add(batch.records)

    @property
    def progress(self) -> RestoreProgress:
        return RestoreProgress(
            plan=self.plan,
            source=self.place.source,
            offset=self.place.offset,
            records=self.records,
            bytes=self.bytes,
            digest=self.digest.text if self.records else "",
        )


_COMPARED = ("key", "value", "headers", "timestamp")


def first_difference(
    target: pa.RecordBatch, archive: pa.RecordBatch, own_times: bool = False
) -> tuple[int, str] | None:
    """Return the row and the column of the first difference of equally many records; None: they are equal.

    :param own_times: the target's broker sets the timestamps.
    """
    compared = _COMPARED[:-1] if own_times else _COMPARED
    differing = [name for name in compared if not target.column(name).equals(archive.column(name))]
    if not differing:
        return None
    rows = {name: _first_row(target.column(name), archive.column(name)) for name in differing}
    name = min(rows, key=lambda name: rows[name])
    return rows[name], name


def _first_row(left: pa.Array, right: pa.Array) -> int:
    low, high = 0, len(left)
    # The first `low` rows are equal, the first `high` are not.
    while high - low > 1:
        middle = (low + high) // 2
        if left.slice(low, middle - low).equals(right.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def shown(target: pa.RecordBatch, archive: LaneBatch, row: int, name: str) -> str:
    """Return the two different values, shortened, for a message."""
    restored, archived = (records.column(name)[row].as_py() for records in (target, archive.records))
    return f"{str(restored)[:80]} instead of {str(archived)[:80]}"

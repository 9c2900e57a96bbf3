"""The records of a lane, taken a few at a time: to compare them with a log, and to send them."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from kafka_archiver.model.restore_progress import Place
from kafka_archiver.work.restore.digests import payload_bytes
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

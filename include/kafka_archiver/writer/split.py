"""Records by the hour of their timestamps, as vectors: no Python a record, no copy where there is nothing to part."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from kafka_archiver.formats.vectors import Int64s
from kafka_archiver.intervals import LAST_MS, MS_PER_HOUR
from kafka_archiver.pipeline.columns import column

# The hour of records without a usable timestamp, where `intervals.hour_of` says None.
NO_HOUR = -1
# Batches of one hour: what goes on as it is, and how much is made of those that are smaller.
_LARGE = 256 << 10
_JOINED = 1 << 20


def one_hour(batch: pa.RecordBatch) -> int | None:
    """The hour in which all records of a batch lie; None when they lie in several."""
    times = column(batch, "timestamp")
    low, high = int(times.min()), int(times.max())
    if low < 0 or high > LAST_MS:
        return NO_HOUR if high < 0 or low > LAST_MS else None
    return low // MS_PER_HOUR if low // MS_PER_HOUR == high // MS_PER_HOUR else None


def by_hour(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s, Int64s]:
    """The records sorted by hour, else in their order; the hours, ascending; and where each begins, and the end."""
    times = column(batch, "timestamp")
    hours = np.where((times < 0) | (times > LAST_MS), NO_HOUR, times // MS_PER_HOUR)
    order = np.argsort(hours, kind="stable")
    hours = hours[order]
    starts = np.flatnonzero(np.diff(hours, prepend=NO_HOUR - 1, append=LAST_MS))
    return batch.take(order), hours[starts[:-1]], starts


def joined(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same records in batches of at least `size` bytes; smaller are the last one, and one before a large one."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if held and batch.nbytes >= size:
            # Together they might be more than one array can hold.
            yield pa.concat_batches(held)
            held, held_bytes = [], 0
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= size:
            whole = pa.concat_batches(held)
            held, held_bytes = [], 0
            yield whole
    if held:
        yield pa.concat_batches(held)


def blocks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Batches with their hour, None for several hours; consecutive ones of several hours joined to `size` bytes.

    A batch of 500 rows over 48 hours is 48 pieces of ten rows, each with the cost of a call; joined they are fewer
    and larger. Small ones of one hour are joined for the same reason (at 140 bytes a record a fifth of the CPU);
    the copy of large ones would cost more than it saves.
    """
    for (hour, large), group in groupby(batches, key=_kind):
        for batch in group if large else joined(group, size if hour is None else min(size, _JOINED)):
            yield hour, batch


def _kind(batch: pa.RecordBatch) -> tuple[int | None, bool]:
    hour = one_hour(batch)
    return hour, hour is not None and batch.nbytes >= _LARGE

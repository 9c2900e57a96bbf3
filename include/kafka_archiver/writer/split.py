"""Records by their parts, as vectors: no Python a record, no copy where there is nothing to part."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from kafka_archiver.columns import Int64s
from kafka_archiver.layouts.base import Layout

# Batches of one part: what goes on as it is, and how much is made of those that are smaller.
_LARGE = 256 << 10
_JOINED = 1 << 20


def one_part(batch: pa.RecordBatch, layout: Layout) -> int | None:
    """The part of which all records of a batch are; None when they are of several."""
    parts = layout.parts(batch)
    return int(parts[0]) if (parts == parts[0]).all() else None


def by_part(batch: pa.RecordBatch, layout: Layout) -> tuple[pa.RecordBatch, Int64s, Int64s]:
    """The records sorted by part, else in their order; the parts, ascending; and where each begins, and the end."""
    parts = layout.parts(batch)
    order = np.argsort(parts, kind="stable")
    parts = parts[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(parts)) + 1, [len(parts)]])
    return batch.take(order), parts[starts[:-1]], starts


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


def blocks(batches: Iterable[pa.RecordBatch], size: int, layout: Layout) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Batches with their part, None for several parts; consecutive ones of several parts joined to `size` bytes.

    A batch of 500 rows over 48 hours is 48 pieces of ten rows, each with the cost of a call; joined they are fewer
    and larger. Small ones of one part are joined for the same reason (at 140 bytes a record a fifth of the CPU);
    the copy of large ones would cost more than it saves.
    """

    def kind(batch: pa.RecordBatch) -> tuple[int | None, bool]:
        part = one_part(batch, layout)
        return part, part is not None and batch.nbytes >= _LARGE

    for (part, large), group in groupby(batches, key=kind):
        for batch in group if large else joined(group, size if part is None else min(size, _JOINED)):
            yield part, batch

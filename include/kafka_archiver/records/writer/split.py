"""Splits records by part, as vectors: no Python code per record, no copy if all records have one part."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from kafka_archiver.records.pipeline.base import PART
from kafka_archiver.values.columns import Int64s, column

# Bytes of batches of one part: a batch of `_LARGE` is not copied; smaller batches are joined up to `_JOINED`.
_LARGE = 256 << 10
_JOINED = 1 << 20
# Bytes of batches of several parts that are sorted at once: sorting copies them.
_SORTED = 2 << 20


def one_part(batch: pa.RecordBatch) -> int | None:
    """The part of all records of a batch; None if they have several parts."""
    parts = column(batch, PART)
    return int(parts[0]) if (parts == parts[0]).all() else None


def by_part(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Int64s, Int64s]:
    """The records in a stable sort by part; the parts, ascending; the first row of each part, then the row count."""
    parts = column(batch, PART)
    order = np.argsort(parts, kind="stable")
    return batch.take(order), *starts_of(parts[order])


def starts_of(parts: Int64s) -> tuple[Int64s, Int64s]:
    """Return the parts of sorted rows, each once; the first row of each part, then the row count."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(parts)) + 1, [len(parts)]])
    return parts[starts[:-1]], starts


def joined(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The records in batches of at least `size` bytes. The last batch, or one before a large one, may be smaller."""
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in batches:
        if pending and batch.nbytes >= size:
            # Joined with the large batch they might not fit one array.
            yield pa.concat_batches(pending)
            pending, pending_bytes = [], 0
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= size:
            whole = pa.concat_batches(pending)
            pending, pending_bytes = [], 0
            yield whole
    if pending:
        yield pa.concat_batches(pending)


# The variant of records, the part (None: several), and the records.
Block = tuple[int, int | None, pa.RecordBatch]


def gathered(
    divided: Iterable[Sequence[tuple[int, pa.RecordBatch]]], size: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Variants with their records, in batches that are `size` bytes together.

    Of a stream whose schemas alternate, each variant has a few rows of each batch. A uniform stream passes as it is.

    :param divided: the records of each batch, by variant.
    """
    pending: dict[int, list[pa.RecordBatch]] = {}
    pending_bytes = 0
    for pieces in divided:
        if not pending and len(pieces) == 1:
            yield pieces[0]
            continue
        more = sum(batch.nbytes for _, batch in pieces)
        if pending and pending_bytes + more >= 2 * size:
            # Joined, they might not fit one array.
            yield from ((variant, pa.concat_batches(batches)) for variant, batches in pending.items())
            pending, pending_bytes = {}, 0
        for variant, batch in pieces:
            pending.setdefault(variant, []).append(batch)
        pending_bytes += more
        if pending_bytes >= size:
            yield from ((variant, pa.concat_batches(batches)) for variant, batches in pending.items())
            pending, pending_bytes = {}, 0
    yield from ((variant, pa.concat_batches(batches)) for variant, batches in pending.items())


def blocks(batches: Iterable[tuple[int, pa.RecordBatch]], size: int) -> Iterator[Block]:
    """Batches of a variant with their part (None: several).

    Consecutive batches of several parts are joined up to `size` bytes. A batch of 500 rows over 48 hours becomes 48
    slices of ten rows, with one call each; joined batches give fewer and larger slices. Small batches of one part are
    joined too: that saves a fifth of the CPU at 140 bytes a record. Large batches of one part are not: the copy would
    cost more than it saves.
    """

    def kind(item: tuple[int, pa.RecordBatch]) -> tuple[int, int | None, bool]:
        variant, batch = item
        part = one_part(batch)
        return variant, part, part is not None and batch.nbytes >= _LARGE

    for (variant, part, large), group in groupby(batches, key=kind):
        own = (batch for _, batch in group)
        for batch in own if large else joined(own, min(size, _SORTED if part is None else _JOINED)):
            yield variant, part, batch

"""Merge batches of several objects by offset."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kafka_archiver.values.columns import column

# The offset of each row, in a column behind those of an object; null: unknown.
OFFSET = pa.field("kafka_archiver.offset", pa.int64())


def merged(sources: Sequence[Iterator[pa.RecordBatch]], name: str = "offset") -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sources in offset order. Each source is in offset order, and none of its batches is empty.

    Sources may have different columns: then each batch has those of one source.

    :param name: the column of offsets.
    """
    heads = {n: batch for n, source in enumerate(sources) if (batch := next(source, None)) is not None}
    while heads:
        # Everything up to this offset is in the heads.
        bound = min(int(column(batch, name)[-1]) for batch in heads.values())
        ready = []
        for n, batch in list(heads.items()):
            offsets = column(batch, name)
            count = int(np.searchsorted(offsets, bound, side="right"))
            if count:
                ready.append(batch.slice(0, count))
            if count < len(offsets):
                heads[n] = batch.slice(count)
            elif (following := next(sources[n], None)) is not None:
                heads[n] = following
            else:
                del heads[n]
        if len(ready) == 1:
            yield ready[0]
        elif all(batch.schema.equals(ready[0].schema) for batch in ready[1:]):
            whole = pa.concat_batches(ready)
            yield whole.take(np.argsort(column(whole, name), kind="stable"))
        else:
            yield from _in_turn(ready, name)


def _in_turn(batches: Sequence[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches of different columns in offset order, as slices."""
    offsets = np.concatenate([column(batch, name) for batch in batches])
    sources = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
    order = np.argsort(offsets, kind="stable")
    ends = [*(np.flatnonzero(np.diff(sources[order])) + 1).tolist(), len(order)]
    taken, start = [0] * len(batches), 0
    for end in ends:
        number = int(sources[order[start]])
        yield batches[number].slice(taken[number], end - start)
        taken[number] += end - start
        start = end

"""Merge batches of several objects by offset."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kafka_archiver.values.columns import column


def merged(sources: Sequence[Iterator[pa.RecordBatch]], name: str = "offset") -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sources in offset order. Each source is in offset order, and none of its batches is empty.

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
        whole = ready[0] if len(ready) == 1 else pa.concat_batches(ready)
        yield whole if len(ready) == 1 else whole.take(np.argsort(column(whole, name), kind="stable"))

"""Maps with a key twice: a JSON object has a name once."""

import numpy as np
import pyarrow as pa

from kafka_archiver.records.formats.vectors import vector
from kafka_archiver.values.columns import Int64s


def last_of_each(maps: pa.Array) -> tuple[pa.Array, pa.Array, Int64s]:
    """All keys, all items and the number of pairs of each map, of which none is null.

    Of a key that a map has twice, the last item, in the place of the first.
    """
    pairs = maps.cast(pa.list_(pa.struct([maps.type.key_field, maps.type.item_field])))
    keys, items = pairs.flatten().flatten()
    counts: Int64s = pairs.value_lengths().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(maps)), counts)
    coded = keys.dictionary_encode()
    names = rows * max(1, len(coded.dictionary)) + coded.indices.to_numpy()
    ordered = np.sort(names)
    if not (ordered[1:] == ordered[:-1]).any():
        return keys, items, counts
    _, first = np.unique(names, return_index=True)
    _, from_end = np.unique(names[::-1], return_index=True)
    order = np.argsort(first)
    first, last = first[order], (len(names) - 1 - from_end)[order]
    return keys.take(vector(first)), items.take(vector(last)), np.bincount(rows[first], minlength=len(maps))

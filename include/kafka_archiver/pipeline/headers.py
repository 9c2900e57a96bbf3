"""The values of headers by name."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.decode.slices import indices


def last_header(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The value (binary) of each record's last header of that name; null without one."""
    headers = batch.column("headers")
    items = headers.flatten()
    found = pc.indices_nonzero(pc.equal(items.field("key"), name))
    places = np.full(batch.num_rows, -1)
    # Of several, the last one stays.
    places[pc.list_parent_indices(headers).take(found).to_numpy()] = found.to_numpy()
    return items.field("value").take(indices(places))

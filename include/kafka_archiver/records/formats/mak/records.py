"""The records of a MAK file, encoded column by column. The byte table is in the package's docstring."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import Buffer
from kafka_archiver.records.vectors import fixed, grouped, joined, text_of
from kafka_archiver.values.columns import Int64s, column

# The first bytes of a file, by version.
MAGIC: Mapping[int, bytes] = {1: b"MAK", 2: b"MA2"}
# The length of a null, by version.
NULL: Mapping[int, int] = {1: 0, 2: -1}


def encoded(batch: pa.RecordBatch, version: int) -> Buffer:
    """The records of a normalised batch."""
    columns = [
        *_sized(batch.column("key"), NULL[version]),
        *_sized(batch.column("value"), NULL[version]),
        _int64s(column(batch, "offset")),
    ]
    if version == 2:
        kinds = batch.column("timestamp_type").to_numpy()
        columns += [_int64s(column(batch, "timestamp")), fixed(kinds.astype(">i4")), *_headers(batch.column("headers"))]
    text, _ = text_of(joined(batch.num_rows, columns))
    return text.data


def _headers(lists: pa.Array) -> list[pa.LargeBinaryArray]:
    """The number of headers of each record, and its headers."""
    counts = lists.value_lengths().to_numpy().astype(np.int64)
    keys, values = lists.flatten().flatten()
    items = joined(len(keys), [*_sized(keys.cast(pa.large_binary()), 0), *_sized(values, NULL[2])])
    return [fixed(counts.astype(">u4")), grouped(items, counts)]


def _sized(values: pa.Array, null: int) -> list[pa.Array]:
    """Lengths and values."""
    return [_int64s(pc.binary_length(values).fill_null(null).to_numpy()), values]


def _int64s(numbers: Int64s) -> pa.LargeBinaryArray:
    return fixed(numbers.astype(">i8"))

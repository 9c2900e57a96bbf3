"""Selects the decoded columns of a file that get no dictionary, by a sample of its first rows.

Where values seldom repeat, pyarrow fills a dictionary up to a megabyte and then gives it up. That costs half of the CPU
of such a column, and makes it larger.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.shared.plain_types import bare, seen_as

# Values of a leaf, and the share of distinct ones from which it has no dictionary: about 12,000 values, evenly mixed,
# have this share in such a sample.
_SAMPLE, _SHARE = 4096, 0.85


def varied(table: pa.Table, leaves: Sequence[str | None]) -> set[str]:
    """The paths of the leaves whose first values are mostly distinct.

    :param table: has rows, and each column as one chunk.
    :param leaves: the path of each leaf of the table, in Parquet's order; None: not asked for.
    """
    sample = table.slice(0, _SAMPLE).to_batches()[0]
    columns = seen_as(sample, bare(table.schema)).columns
    values = (leaf for column in columns for leaf in _leaves(column))
    return {path for path, some in zip(leaves, values, strict=True) if path and _is_varied(some)}


def _is_varied(values: pa.Array) -> bool:
    some = values.slice(0, _SAMPLE)
    return bool(pc.count_distinct(some).as_py() > _SHARE * (len(some) - some.null_count))


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_map(kind):
        values = values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))).flatten()
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = values.flatten()
    elif not pa.types.is_struct(kind):
        yield values
        return
    for child in values.flatten() if pa.types.is_struct(values.type) else [values]:
        yield from _leaves(child)

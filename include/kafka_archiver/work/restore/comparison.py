"""Compare records of a target with those of a lane. Pure, apart from Arrow."""

import numpy as np
import pyarrow as pa

from kafka_archiver.values.columns import column
from kafka_archiver.work.restore.lane import LaneBatch

_COMPARED = ("key", "value", "headers", "timestamp")


def first_difference(
    target: pa.RecordBatch, archive: pa.RecordBatch, own_times: bool = False
) -> tuple[int, str] | None:
    """Return the row and the column of the first difference of equally many records; None: they are equal.

    :param own_times: the target's broker sets the timestamps.
    """
    compared = _COMPARED[:-1] if own_times else _COMPARED
    differing = [name for name in compared if not target.column(name).equals(archive.column(name))]
    if not differing:
        return None
    rows = {name: _first_row(target.column(name), archive.column(name)) for name in differing}
    name = min(rows, key=lambda name: rows[name])
    return rows[name], name


def _first_row(left: pa.Array, right: pa.Array) -> int:
    low, high = 0, len(left)
    # The first `low` rows are equal, the first `high` are not.
    while high - low > 1:
        middle = (low + high) // 2
        if left.slice(low, middle - low).equals(right.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low


def shown(target: pa.RecordBatch, archive: LaneBatch, row: int, name: str) -> str:
    """Return the two different values, shortened, for a message."""
    here, there = (records.column(name)[row].as_py() for records in (target, archive.records))
    return f"{str(here)[:80]} instead of {str(there)[:80]}"


def target_offsets(batch: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return the offsets of the target's records."""
    return column(batch, "offset")

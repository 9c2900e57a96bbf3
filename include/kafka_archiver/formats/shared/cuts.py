"""Where blocks and row groups end: decided record by record, so the size of batches has no influence."""

import sys

import numpy as np

from kafka_archiver.columns import Int64s


def cuts(sizes: Int64s, held: int, limit: int, held_rows: int = 0, most_rows: int = sys.maxsize) -> list[int]:
    """The numbers of records after which a block ends.

    The record that reaches `limit` bytes is the last of its block, and so is the one that makes `most_rows` records.

    :param sizes: bytes of each record.
    :param held: bytes of earlier records in the open block, of which there are `held_rows`.
    """
    ends = np.cumsum(sizes)
    found: list[int] = []
    reached, full = limit - held, most_rows - held_rows
    while (row := min(int(np.searchsorted(ends, reached)), full - 1)) < len(ends):
        found.append(row + 1)
        reached, full = int(ends[row]) + limit, row + 1 + most_rows
    return found

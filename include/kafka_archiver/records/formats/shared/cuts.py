"""Where blocks and row groups end: decided record by record, so the size of batches has no influence."""

import sys

import numpy as np

from kafka_archiver.values.columns import Int64s


def cuts(
    sizes: Int64s, pending_size: int, limit: int, pending_rows: int = 0, most_rows: int = sys.maxsize
) -> list[int]:
    """The numbers of records after which a block ends.

    The record that reaches `limit` bytes is the last of its block, and so is the one that makes `most_rows` records.

    :param sizes: bytes of each record.
    :param pending_size: bytes of earlier records in the open block, of which there are `pending_rows`.
    """
    totals = np.cumsum(sizes)
    ends: list[int] = []
    reached, full = limit - pending_size, most_rows - pending_rows
    while (row := min(int(np.searchsorted(totals, reached)), full - 1)) < len(totals):
        ends.append(row + 1)
        reached, full = int(totals[row]) + limit, row + 1 + most_rows
    return ends

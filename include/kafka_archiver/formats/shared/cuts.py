"""Where blocks and row groups end: decided record by record, so the size of batches has no influence."""

import numpy as np

from kafka_archiver.columns import Int64s


def cuts(sizes: Int64s, held: int, limit: int) -> list[int]:
    """The numbers of records after which a block ends. The record that reaches `limit` bytes is the last of its block.

    :param sizes: bytes of each record.
    :param held: bytes of earlier records in the open block.
    """
    ends = np.cumsum(sizes)
    found: list[int] = []
    reached = limit - held
    while (row := int(np.searchsorted(ends, reached))) < len(ends):
        found.append(row + 1)
        reached = int(ends[row]) + limit
    return found

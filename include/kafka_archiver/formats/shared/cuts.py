"""Where blocks and row groups end: decided record by record, so that no cut of the records into batches matters."""

import numpy as np

from kafka_archiver.columns import Int64s


def cuts(sizes: Int64s, held: int, limit: int) -> list[int]:
    """After how many of these records a block ends: with each record that makes it reach `limit` bytes.

    :param sizes: bytes of each record.
    :param held: bytes of the records before them that are in no closed block.
    """
    ends = np.cumsum(sizes)
    found: list[int] = []
    reached = limit - held
    while (row := int(np.searchsorted(ends, reached))) < len(ends):
        found.append(row + 1)
        reached = int(ends[row]) + limit
    return found

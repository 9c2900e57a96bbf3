"""Columns of Arrow batches as vectors, without Arrow."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


Int64s = npt.NDArray[np.int64]


def column(batch: "pa.RecordBatch", name: str) -> Int64s:
    """A column of 64-bit integers, not copied."""
    # Not to_numpy(), which imports pandas: half a CPU second for each process.
    numbers = batch.column(name)
    return np.frombuffer(numbers.buffers()[1], np.int64, len(numbers), 8 * numbers.offset)

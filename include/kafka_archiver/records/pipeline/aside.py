"""Records that no process survives: rejected before anything looks at them."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kafka_archiver.records.pipeline.base import Marks
from kafka_archiver.values.columns import column


class Aside:
    """Rejects records by offset. :param reasons: why, by offset."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        self._reasons = reasons
        self._offsets = np.array(sorted(reasons), np.int64)

    def __call__(self, batch: pa.RecordBatch, marks: Marks) -> pa.RecordBatch:
        """Keep all other records."""
        set_aside = np.intersect1d(column(batch, "offset"), self._offsets).tolist()
        marks.reject({offset: self._reasons[offset] for offset in set_aside})
        return batch

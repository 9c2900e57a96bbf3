"""One object that is being written: takes records, sends full parts."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kafka_archiver.model.plan import Chunk
from kafka_archiver.records.formats.base import Encoder, HasSidecar
from kafka_archiver.records.pipeline.base import HOUR, PART
from kafka_archiver.records.writer.result import WrittenObject
from kafka_archiver.records.writer.upload import PartStream
from kafka_archiver.values.columns import column
from kafka_archiver.values.intervals import LAST_MS


class OpenObject:
    """Encodes records of one path, in offset order.

    :param sidecar: for the sidecar, if the encoder has one.
    """

    def __init__(self, path: str, encoder: Encoder, parts: PartStream, sidecar: PartStream | None = None) -> None:
        self.encoder = encoder
        self.parts = parts
        self._sidecar = sidecar
        self._path = path
        self.rows = self._records = 0
        self._offsets = (-1, -1)
        self._times = (LAST_MS, -1)
        self._hours: Counter[int] = Counter()

    @property
    def memory(self) -> int:
        """The bytes of memory that this object takes."""
        return self.encoder.pending + self.parts.buffer.memory

    def write(self, batch: pa.RecordBatch) -> None:
        offsets, times = column(batch, "offset"), column(batch, "timestamp")
        first = self._offsets[0] if self.rows else int(offsets[0])
        self._records += int(np.count_nonzero(offsets[1:] != offsets[:-1])) + bool(offsets[0] != self._offsets[1])
        low, high = int(times.min()), int(times.max())
        self._times = (min(low, self._times[0]), max(high, self._times[1])) if self.rows else (low, high)
        self._offsets = (first, int(offsets[-1]))
        self.rows += len(offsets)
        if HOUR in batch.schema.names:
            hours, rows = np.unique(column(batch, HOUR), return_counts=True)
            self._hours.update(dict(zip(hours.tolist(), rows.tolist(), strict=True)))
        added = [name for name in (PART, HOUR) if name in batch.schema.names]
        self.parts.put(self.encoder.write(batch.drop_columns(added)))

    def finish(self) -> None:
        """Send the last part, and the sidecar."""
        self.parts.put(self.encoder.finish())
        self.parts.finish()
        if self._sidecar and isinstance(self.encoder, HasSidecar):
            self._sidecar.put([self.encoder.sidecar()])
            self._sidecar.finish()
        # An encoder's state is hundreds of kilobytes, and thousands of finished objects may wait for the last one.
        del self.encoder

    def written(self, chunk: Chunk) -> Iterator[WrittenObject]:
        """The object, and its sidecar. Waits until all parts are stored."""
        whole = WrittenObject(
            chunk=chunk,
            path=self._path,
            rows=self.rows,
            first_offset=self._offsets[0],
            last_offset=self._offsets[1],
            min_timestamp=self._times[0],
            max_timestamp=self._times[1],
            records=self._records,
            rows_by_hour=tuple((None if h < 0 else h, rows) for h, rows in sorted(self._hours.items())) or None,
            upload=self.parts.uploaded(),
        )
        yield whole
        if self._sidecar:
            yield whole.sidecar(self._sidecar.uploaded())

    def close(self) -> None:
        """Close the temporary files, also after an error."""
        for parts in (self.parts, self._sidecar):
            if parts:
                parts.buffer.close()

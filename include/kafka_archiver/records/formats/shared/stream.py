"""The encoder of text formats: records as one stream, compressed."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Target
from kafka_archiver.records.formats.shared.compress import compressed

# Gives the bytes of a batch, in pieces of whole records.
Pieces = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]


class StreamEncoder:
    """Encodes records as bytes of one stream.

    :param pieces: makes the bytes of a batch.
    :param head: the bytes before the first record.
    """

    def __init__(self, target: Target, pieces: Pieces, head: bytes = b"") -> None:
        self._target = target
        self._pieces = pieces
        self._stream = compressed(target.settings.codec, target.settings.codec_rules)
        self._ready: list[Buffer] = self._stream.write(head) if head else []

    @property
    def pending(self) -> int:
        """Bytes that the compressor does not have yet."""
        return self._stream.pending

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records; return the bytes that are ready."""
        ready, self._ready = self._ready, []
        if batch.num_rows:
            for piece in self._pieces(batch, self._target):
                ready += self._stream.write(piece)
        return ready

    def spill(self, _directory: Path) -> int:
        """Spill nothing: this encoder holds no rows."""
        return 0

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
        return [*self._ready, *self._stream.finish()]

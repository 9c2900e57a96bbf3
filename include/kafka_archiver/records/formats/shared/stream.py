"""The encoder of text formats: records as one stream, compressed."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from kafka_archiver.records.formats.base import Buffer, Encoder, Target
from kafka_archiver.records.formats.shared.compress import compressed

# Gives the bytes of a batch, in pieces of whole records.
Pieces = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]


class StreamEncoder(Encoder):
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
        return self._stream.pending

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        ready, self._ready = self._ready, []
        if batch.num_rows:
            for piece in self._pieces(batch, self._target):
                ready += self._stream.write(piece)
        return ready

    def finish(self) -> list[Buffer]:
        return [*self._ready, *self._stream.finish()]

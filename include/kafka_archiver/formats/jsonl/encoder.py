"""JSON lines: one record a line, plain, gzip or zstd."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from kafka_archiver.formats.base import Buffer, Target, is_typed
from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.formats.jsonl.typed import typed_lines
from kafka_archiver.formats.jsonl.values import value_lines
from kafka_archiver.formats.shared.compress import compressed
from kafka_archiver.plan import Content

# Gives the lines of a batch, in pieces of whole lines.
Lines = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]
_WRITERS: dict[Content, Lines] = {
    "value": lambda batch, _: [value_lines(batch)],
    "record": lambda batch, target: map(b"".join, record_lines(batch, target)),
}


def lines_of(target: Target) -> Lines:
    """The function that makes the lines of an object."""
    return typed_lines if is_typed(target.schema) else _WRITERS[target.settings.content]


class LineEncoder:
    """Encodes records as lines of one stream.

    :param lines: makes the lines of a batch.
    """

    def __init__(self, target: Target, lines: Lines) -> None:
        self._target = target
        self._lines = lines
        self._stream = compressed(target.settings.codec)

    @property
    def pending(self) -> int:
        """Bytes that the compressor does not have yet."""
        return self._stream.pending

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records; return the bytes that are ready."""
        ready: list[Buffer] = []
        if batch.num_rows:
            for lines in self._lines(batch, self._target):
                ready += self._stream.write(lines)
        return ready

    def spill(self, _directory: Path) -> int:
        """Spill nothing: this encoder holds no rows."""
        return 0

    def finish(self) -> list[Buffer]:
        """Return the rest of the bytes."""
        return self._stream.finish()

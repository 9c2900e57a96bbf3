"""JSON lines: one record a line, plain, gzip or zstd."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from kafka_archiver.formats.base import Buffer, Target
from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.formats.jsonl.values import value_lines
from kafka_archiver.formats.shared.compress import compressed
from kafka_archiver.plan import Content

# The lines of a batch, whole ones in each piece.
Lines = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]
WRITERS: dict[Content, Lines] = {
    "value": lambda batch, _: [value_lines(batch)],
    "record": lambda batch, target: map(b"".join, record_lines(batch, target)),
}


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
        """What the compressor has not been given yet."""
        return self._stream.pending

    def write(self, batch: pa.RecordBatch) -> list[Buffer]:
        """Take records. Returns what is ready to be stored."""
        ready: list[Buffer] = []
        if batch.num_rows:
            for lines in self._lines(batch, self._target):
                ready += self._stream.write(lines)
        return ready

    def spill(self, _directory: Path) -> int:
        """Nothing is held that could be spilled."""
        return 0

    def finish(self) -> list[Buffer]:
        """The rest."""
        return self._stream.finish()

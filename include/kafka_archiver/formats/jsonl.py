"""JSON lines: one record a line, plain, gzip or zstd."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

import pyarrow as pa

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import Buffer, Content, Fitting, Target
from kafka_archiver.formats.compress import compressed, decompressed
from kafka_archiver.formats.jsonl_records import record_lines, records_of
from kafka_archiver.formats.jsonl_values import one_line_each, value_lines, values_of
from kafka_archiver.plan import Settings

# The lines of a batch, whole ones in each piece.
Lines = Callable[[pa.RecordBatch, Target], Iterable[Buffer]]
_WRITERS: dict[Content, Lines] = {
    "value": lambda batch, _: [value_lines(batch)],
    "record": lambda batch, target: map(b"".join, record_lines(batch, target)),
}
_READERS: dict[Content, Callable[[bytes], pa.RecordBatch]] = {"value": values_of, "record": records_of}


class LineEncoder:
    """Encodes records as lines of one stream.

    :param lines: makes the lines of a batch.
    """

    def __init__(self, target: Target, lines: Lines) -> None:
        self._target = target
        self._lines = lines
        self._stream = compressed(target.codec)

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


class JsonLines:
    """The format `jsonl`."""

    name = "jsonl"
    extensions: ClassVar[Mapping[str, str]] = {"none": ".jsonl", "gzip": ".jsonl.gz", "zstd": ".jsonl.zst"}
    contents: ClassVar[frozenset[Content]] = frozenset({"value", "record"})

    def encoder(self, target: Target) -> LineEncoder:
        """A new encoder."""
        return LineEncoder(target, _WRITERS[target.content])

    def stage(self, settings: Settings) -> Fitting | None:
        """A value is a line."""
        return one_line_each if settings.content == "value" else None

    def read(self, source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
        """The records back, in batches of about a mebibyte of compressed data."""
        for lines in _whole_lines(decompressed(target.codec, source), target.key):
            yield _READERS[target.content](lines)


def _whole_lines(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same bytes, cut behind newlines."""
    held: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, piece[:end]])
            held = []
        if end < len(piece):
            held.append(piece[end:])
    if held:
        raise IntegrityError(f"{name} ends in the middle of a line")

"""Reads JSON lines."""

from collections.abc import Callable, Iterator
from typing import BinaryIO

import pyarrow as pa

from kafka_archiver.model.settings import Content
from kafka_archiver.records.formats.base import VALUE, Target, is_typed
from kafka_archiver.records.formats.jsonl.records import records_of
from kafka_archiver.records.formats.jsonl.typed_reader import typed_of
from kafka_archiver.records.formats.jsonl.values import values_of
from kafka_archiver.records.formats.shared.decompress import decompressed, whole

_READERS: dict[Content, Callable[[bytes], pa.RecordBatch]] = {"value": values_of, "record": records_of}


def read_records(source: BinaryIO, target: Target, several: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema, or of the column `value`, each from about 1 MiB of compressed data.

    :param several: a gzip stream may have several members.
    :raises IntegrityError: `source` is not made of complete lines of such records.
    """
    typed = is_typed(target.schema)
    for lines in whole_lines(decompressed(target.settings.codec, source, several), target.key):
        yield typed_of(lines, target.schema) if typed else _READERS[target.settings.content](lines)


def read_lines(source: BinaryIO, target: Target, several: bool = False) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Each line as a value, whatever it has.

    :param several: as above.
    """
    lines = whole_lines(decompressed(target.settings.codec, source, several), target.key)
    return VALUE, map(values_of, lines)


def whole_lines(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same bytes in pieces that end with a newline."""
    return whole(pieces, lambda piece: piece.rfind(b"\n") + 1, "line", name)

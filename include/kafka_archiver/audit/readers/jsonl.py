"""JSON lines, read by orjson."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson

from kafka_archiver.audit.readers.base import RecordCoordinates, coordinate_columns, coordinates
from kafka_archiver.audit.readers.streams import READ, plain
from kafka_archiver.model.settings import Settings


def lines(file: BinaryIO, settings: Settings) -> int:
    """The number of lines of an object.

    :raises ValueError: the last line has no newline.
    """
    count, last = 0, b"\n"
    with plain(file, settings.codec) as stream:
        while piece := stream.read(READ):
            count, last = count + piece.count(b"\n"), piece[-1:]
    if last != b"\n":
        raise ValueError("the last line has no newline")
    return count


def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    """The records of an object."""
    stream: Any = plain(file, settings.codec)
    columns = coordinate_columns(settings)
    for line in io.BufferedReader(stream, READ):
        record = orjson.loads(line)
        yield coordinates(record, columns)

"""CSV, read by the standard library."""

import csv
import io
import sys
from collections.abc import Iterator
from typing import BinaryIO

from kafka_archiver.audit.readers.base import RecordCoordinates, coordinate_columns, coordinates
from kafka_archiver.audit.readers.streams import plain
from kafka_archiver.model.settings import Settings


def rows(file: BinaryIO, settings: Settings) -> int:
    """The number of rows of an object, without the header."""
    return sum(1 for _ in _rows(file, settings))


def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    """The records of an object."""
    columns = coordinate_columns(settings)
    # These come first.
    present = [column for column in columns if column]
    for row in _rows(file, settings):
        topic, partition, offset, timestamp = coordinates(dict(zip(present, row, strict=False)), columns)
        yield RecordCoordinates(topic, partition and int(partition), int(offset), timestamp and int(timestamp))


def _rows(file: BinaryIO, settings: Settings) -> Iterator[list[str]]:
    # The default of 128 KiB a field is for everybody in this process; so is this.
    csv.field_size_limit(sys.maxsize)
    options = settings.options
    text = io.TextIOWrapper(plain(file, settings.codec), "utf-8", newline="")
    rows = csv.reader(text, delimiter=str(options["delimiter"]), quotechar=str(options["quote"]), strict=True)
    if options["header"] and next(rows, None) is None:
        raise ValueError("the header is missing")
    return rows

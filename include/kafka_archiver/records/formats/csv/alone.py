"""Reads CSV by its header."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, get_args

import pyarrow as pa

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.records.formats.base import RECORD, VALUE, Target
from kafka_archiver.records.formats.csv import CsvOptions
from kafka_archiver.records.formats.csv.columns import columns_of
from kafka_archiver.records.formats.csv.reader import read_records
from kafka_archiver.records.formats.shared.decompress import decompressed

_RECORD = [column.name for column in columns_of(RECORD)]


def read_alone(source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of the header, as text unless they are those of a content without decoded values, and the records.

    :raises IntegrityError: it is not compressed like this. ConfigError: it has no header.
    """
    line = b"".join(_until_line(decompressed(target.settings.codec, source))).decode(errors="replace")
    delimiter = max(get_args(CsvOptions.model_fields["delimiter"].annotation), key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    again = io.StringIO()
    csv.writer(again, delimiter=delimiter, lineterminator="").writerow(names)
    # Quotes that names do not need are those of values.
    if not names or len(set(names)) < len(names) or again.getvalue() != line:
        raise ConfigError(
            f"{target.key} does not begin with a header, which tells the columns (`store.options.header: false` leaves "
            "it out), so its rows cannot be printed as JSON lines; a program for CSV reads them"
        )
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    if names == _RECORD:
        schema = RECORD
    elif names == ["value"] and target.settings.content == "value":
        schema = VALUE
    source.seek(0)
    return schema, read_records(source, replace(target, schema=schema), CsvOptions(delimiter=delimiter))


def _until_line(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces up to the end of the first line."""
    for piece in pieces:
        line, newline, _ = piece.partition(b"\n")
        yield line
        if newline:
            return

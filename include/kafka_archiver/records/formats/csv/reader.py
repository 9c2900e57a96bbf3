"""Reads CSV with pyarrow, whole rows at a time."""

import csv as text_csv
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from kafka_archiver.messages.errors import ConfigError, IntegrityError
from kafka_archiver.records.formats.base import RECORD, VALUE, Target
from kafka_archiver.records.formats.csv import CsvOptions
from kafka_archiver.records.formats.csv.cells import CsvColumn, columns_of
from kafka_archiver.records.formats.csv.rows import Rows
from kafka_archiver.records.formats.shared.decompress import decompressed, whole
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as

_RECORD = [column.name for column in columns_of(RECORD)]
_NEWLINE = ord("\n")


def read_records(source: BinaryIO, target: Target, options: CsvOptions) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema or, for values without a schema, of the column `value`.

    :raises IntegrityError: `source` is not a complete file of such rows.
    """
    columns, header = columns_of(target.schema), Rows(target, options).header
    schema = pa.schema([VALUE.field("value")]) if target.schema.equals(VALUE) else target.schema
    for rows in _whole_rows(decompressed(target.settings.codec, source), ord(options.quote), target.key):
        if not rows.startswith(header):
            raise IntegrityError(f"{target.key} does not begin with the header {header!r}")
        rows, header = rows[len(header) :], b""
        if rows:
            yield _batch(rows, columns, schema, target.key, options)
    if header:
        raise IntegrityError(f"{target.key} has no header")


def _whole_rows(pieces: Iterator[bytes], quote: int, name: str) -> Iterator[bytes]:
    """The same bytes in pieces that end where a row does: at a newline after an even number of quotes."""
    inside = 0

    def end_of(piece: bytes) -> int:
        nonlocal inside
        text = np.frombuffer(piece, np.uint8)
        open_ = np.bitwise_xor.accumulate((text == quote).astype(np.uint8)) ^ inside
        ends = np.flatnonzero((text == _NEWLINE) & (open_ == 0))
        inside = int(open_[-1]) if len(open_) else inside
        return int(ends[-1]) + 1 if len(ends) else 0

    return whole(pieces, end_of, "row", name)


def _batch(rows: bytes, columns: list[CsvColumn], schema: pa.Schema, name: str, options: CsvOptions) -> pa.RecordBatch:
    names = [column.name for column in columns]
    try:
        table = csv.read_csv(
            pa.BufferReader(rows),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(rows) + 1),
            csv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote,
                newlines_in_values=True,
                ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types={column.name: _stored(column) for column in columns},
                null_values=[options.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        arrays: dict[str, pa.Array] = {}
        for column in columns:
            source = column.source
            values = column.cells.back(table.column(column.name).combine_chunks(), source)
            # Kafka's key and value have two columns.
            arrays[source.name] = pc.coalesce(arrays[source.name], values) if source.name in arrays else values
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), schema=bare(schema))
        batch.validate(full=True)
        return seen_as(batch, schema)
    except (ValueError, KeyError, TypeError, ArithmeticError, AttributeError, pa.ArrowException) as error:
        raise IntegrityError(f"{name} has a row that does not fit its columns: {error}") from error


def _stored(column: CsvColumn) -> pa.DataType:
    """The type as the file has it."""
    kind = column.source.type
    by_library = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_time)
    return kind if any(of(kind) for of in by_library) else pa.string()


def read_alone(source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of the header, as text unless they are those of a content without decoded values, and the records.

    :raises IntegrityError: it is not compressed like this. ConfigError: it has no header.
    """
    line = b"".join(_until_line(decompressed(target.settings.codec, source))).decode(errors="replace")
    delimiter = max(get_args(CsvOptions.model_fields["delimiter"].annotation), key=line.count)
    names = next(text_csv.reader([line], delimiter=delimiter), [])
    again = io.StringIO()
    text_csv.writer(again, delimiter=delimiter, lineterminator="").writerow(names)
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

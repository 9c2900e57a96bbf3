"""Reads Parquet objects."""

import io
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Sought, Target
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.parquet.spark import as_before, written
from kafka_archiver.records.formats.shared.columns import with_kafkas
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as
from kafka_archiver.records.formats.shared.records import kafkas

# Decoded bytes of a batch: larger ones leave the CPU's caches, and their memory is new each time.
_BATCH_BYTES = 2 << 20
# Bytes that are read at once.
_READ = 1 << 20
# Rows of a batch.
_FEWEST, _MOST = 1024, 65_536


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema.

    :param source: seekable.
    :raises IntegrityError: `source` is not a complete Parquet file of records.
    """
    yield from _records(target, lambda: _batches(_file(source)))


def read_from(source: BinaryIO, target: Target, sought: Sought) -> tuple[int, Iterator[pa.RecordBatch]] | None:
    """Return the number of the first row of the row group with an offset, and the records from there on.

    None: neither a column of offsets nor the number of the row tells the row group.
    """
    names = [field.name for field in target.schema if kafkas(field) == "offset"]
    try:
        file = _file(source, pre_buffer=True)
        count = file.metadata.num_row_groups
        ends = np.cumsum([file.metadata.row_group(number).num_rows for number in range(count)]).tolist()
        if not ends or ends[-1] != sought.rows:
            raise IntegrityError(f"{target.key} has {ends[-1:]} rows by its footer, expected {sought.rows}")
        if sought.row is not None:
            first = bisect_right(ends, sought.row)
        elif names:
            # Not by `column().statistics`: of a damaged footer, pyarrow ends the process there.
            first = bisect_left(range(count), sought.offset, key=lambda number: _last_offset(file, number, names[0]))
        else:
            return None
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        raise IntegrityError(f"{target.key} is not a complete Parquet file of records: {error}") from error

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(first, count):
            yield from _batches(file, [number])

    return (ends[first - 1] if first else 0), _records(target, batches)


def _file(source: BinaryIO, pre_buffer: bool = False) -> pq.ParquetFile:
    if (data := getattr(source, "data", None)) is not None:
        # Of a `CopyFile`, whose checksum was compared: pages are decoded where they are, without a copy.
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), pre_buffer=False)
    # pyarrow takes a short read for the end.
    whole = io.BufferedReader(source, _READ) if isinstance(source, io.RawIOBase) and not pre_buffer else source
    # Without `buffer_size`, each column of a row group is in memory as a whole, which is new memory each time.
    size = 0 if pre_buffer else _READ
    return pq.ParquetFile(whole, page_checksum_verification=True, pre_buffer=pre_buffer, buffer_size=size)


def _batches(file: pq.ParquetFile, groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
    about = file.metadata
    size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
    rows = min(max(_FEWEST, _BATCH_BYTES * about.num_rows // max(1, size)), _MOST)
    return cast(Iterator[pa.RecordBatch], file.iter_batches(rows, row_groups=groups, use_threads=False))


def _last_offset(file: pq.ParquetFile, group: int, name: str) -> int:
    """Return the last offset of a row group; reads its column of offsets.

    :raises ValueError: it has none.
    """
    last = None
    for batch in file.iter_batches(_MOST, row_groups=[group], columns=[name], use_threads=False):
        last = batch.column(0)[-1].as_py()
    if not isinstance(last, int):
        raise ValueError(f"row group {group} has no offset")
    return last


def _records(target: Target, batches: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches of a file with the columns of the target."""
    file_schema = written(target.schema, ParquetOptions.model_validate(target.settings.options))
    schema, back = bare(file_schema), seen_as if file_schema.equals(target.schema) else as_before
    try:
        for batch in batches():
            records = seen_as(batch, bare(batch.schema))
            columns = [records.column(field.name).cast(field.type) for field in schema]
            yield back(pa.RecordBatch.from_arrays(columns, schema=schema), target.schema)
    except (pa.ArrowException, OSError, LookupError, ValueError, ArithmeticError) as error:
        raise IntegrityError(f"{target.key} is not a complete Parquet file of records: {error}") from error


def read_alone(source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file's schema, and its records.

    :raises IntegrityError: `source` is no Parquet file.
    """
    try:
        schema = with_kafkas(pq.read_schema(source).remove_metadata())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise IntegrityError(f"{target.key} is not a complete Parquet file: {error}") from error
    source.seek(0)
    return schema, read_records(source, replace(target, schema=schema))

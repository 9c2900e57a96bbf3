"""Parquet files, read by pyarrow."""

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.audit.readers.base import RecordCoordinates, coordinate_columns
from kafka_archiver.model.settings import Settings


def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    """The records of an object."""
    names = coordinate_columns(settings)
    for table in _row_groups(file):
        columns = [table.column(name) if name else pa.nulls(len(table)) for name in names]
        if names[3]:
            columns[3] = columns[3].cast(pa.timestamp("ms")).cast(pa.int64())
        yield from map(RecordCoordinates, *(column.to_pylist() for column in columns))


def values(file: BinaryIO, settings: Settings) -> int:  # noqa: ARG001 - the file names its codecs
    """The number of records of an object."""
    return sum(map(len, _row_groups(file)))


def _row_groups(file: BinaryIO) -> Iterator[pa.Table]:
    """All columns of each row group: reading them checks their pages."""
    reader = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
    for group in range(reader.num_row_groups):
        yield reader.read_row_group(group)

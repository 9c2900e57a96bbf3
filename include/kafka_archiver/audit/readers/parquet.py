"""Parquet files, read by pyarrow."""

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.audit.readers.base import Seen
from kafka_archiver.plan import Settings


def records(file: BinaryIO, settings: Settings) -> Iterator[Seen]:  # noqa: ARG001 - the file names its codecs
    """The records of an object."""
    reader = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
    for group in range(reader.num_row_groups):
        table = reader.read_row_group(group)
        columns = [table.column(name) for name in Seen._fields]
        columns[3] = columns[3].cast(pa.timestamp("ms")).cast(pa.int64())
        yield from map(Seen, *(column.to_pylist() for column in columns))

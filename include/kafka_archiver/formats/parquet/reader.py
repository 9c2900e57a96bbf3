"""Reads Parquet objects."""

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.base import Target


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema.

    :param source: seekable.
    :raises IntegrityError: `source` is not a complete Parquet file of records.
    """
    try:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        for batch in file.iter_batches(use_threads=False):
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in target.schema], schema=target.schema
            )
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise IntegrityError(f"{target.key} is not a complete Parquet file of records: {error}") from error

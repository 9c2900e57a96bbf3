"""Reads Parquet objects."""

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.parquet import ParquetOptions
from kafka_archiver.records.formats.parquet.spark import as_before, written
from kafka_archiver.records.formats.shared.file_schema import with_kafkas
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema.

    :param source: seekable.
    :raises IntegrityError: `source` is not a complete Parquet file of records.
    """
    file_schema = written(target.schema, ParquetOptions.model_validate(target.settings.options))
    schema, back = bare(file_schema), seen_as if file_schema.equals(target.schema) else as_before
    try:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        for batch in file.iter_batches(use_threads=False):
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
    except (pa.ArrowException, OSError) as error:
        raise IntegrityError(f"{target.key} is not a complete Parquet file: {error}") from error
    source.seek(0)
    return schema, read_records(source, replace(target, schema=schema))

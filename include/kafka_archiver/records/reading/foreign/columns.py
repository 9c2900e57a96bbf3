"""Files with columns, Avro and Parquet: the columns of the values, or of Lenses' envelope."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.messages.errors import IntegrityError, error_in_words
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.parquet.reader import read_alone as parquet_alone
from kafka_archiver.records.reading.foreign.base import Facts, Known, envelope_of
from kafka_archiver.records.reading.merge import OFFSET


class Avro:
    """Object container files; the file says its codec."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:
        """Count the records by block, and read their envelopes if they have some."""
        # Of the extra `avro`, which archives of other formats do without.
        import fastavro

        try:
            blocks: Any = fastavro.block_reader(source)
            fields = {field["name"] for field in blocks.writer_schema.get("fields", ())}
        except Exception as error:
            # Of the header, too, each library has errors of its own; the source is a local copy.
            raise IntegrityError(
                f"{target.key} is not a complete Avro file of records: {error_in_words(error)}"
            ) from error
        if not envelope or "metadata" not in fields:
            rows = _counted(blocks, target)
            return Facts(rows)
        source.seek(0)
        return _facts(_avro_alone(source, target))

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records, a batch a block."""
        return _with_offsets(_avro_alone(source, target), has_offsets)


def _avro_alone(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    from kafka_archiver.records.formats.avro.reader import read_alone

    return read_alone(source, target)[1]


class Parquet:
    """Parquet files; the file says its codec."""

    def facts(self, source: BinaryIO, target: Target, envelope: bool) -> Facts:
        """Count the records by the footer, and read their envelopes if they have some."""
        schema, batches = parquet_alone(source, target)
        if envelope and "metadata" in schema.names:
            return _facts(batches)
        return Facts(sum(batch.num_rows for batch in batches))

    def read(self, source: BinaryIO, target: Target, has_offsets: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records, some at a time."""
        return _with_offsets(parquet_alone(source, target)[1], has_offsets)


def _counted(blocks: Any, target: Target) -> int:
    try:
        return sum(block.num_records for block in blocks)
    except Exception as error:
        # Each codec's library raises its own error for damaged bytes; the source is a local copy.
        raise IntegrityError(f"{target.key} is not a complete Avro file of records: {error_in_words(error)}") from error


def _facts(batches: Iterator[pa.RecordBatch]) -> Facts:
    """Return the facts of records with a column `metadata`, which may be Lenses'."""
    rows, is_envelope, known = 0, True, Known()
    for batch in batches:
        rows += batch.num_rows
        records = [envelope_of({"metadata": item}) for item in _metadata(batch)] if is_envelope else []
        is_envelope = is_envelope and None not in records
        if is_envelope:
            known.add([record for record in records if record])
    return known.facts() if is_envelope else Facts(rows)


def _metadata(batch: pa.RecordBatch) -> list[Any]:
    column = batch.column("metadata")
    if not pa.types.is_struct(column.type):
        return [None] * batch.num_rows
    items: list[Any] = []
    for item in column.to_pylist():
        time = item.get("timestamp") if item else None
        if isinstance(time, datetime):
            item = {**item, "timestamp": int(time.timestamp() * 1000)}
        items.append(item)
    return items


def _with_offsets(batches: Iterator[pa.RecordBatch], has_offsets: bool) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if has_offsets:
            offsets = pc.struct_field(batch.column("metadata"), "offset").cast(OFFSET.type)
            batch = batch.append_column(OFFSET, offsets)
        yield batch

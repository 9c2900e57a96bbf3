"""Reads Avro objects with fastavro; records as Kafka has them, column by column."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any, BinaryIO
from uuid import UUID

import fastavro
import pyarrow as pa

from kafka_archiver.messages.errors import ArchiverError, ConfigError, IntegrityError, error_in_words
from kafka_archiver.model.schemas import Schema
from kafka_archiver.records.avro.schema import parse
from kafka_archiver.records.avro.types import arrow_field
from kafka_archiver.records.formats.avro.plain import plain_records
from kafka_archiver.records.formats.avro.schema import schema_of, stored
from kafka_archiver.records.formats.base import RECORD, Target
from kafka_archiver.records.formats.shared.columns import with_kafkas
from kafka_archiver.records.formats.shared.plain_types import bare, plain, seen_as
from kafka_archiver.records.formats.shared.to_arrow import Back, record

# More digits than a decimal of 256 bits has.
_EXACT = Context(prec=80)


def leaf(kind: pa.DataType) -> Back | None:
    """The function that makes a value of the type; None if the value needs no change."""
    if kind == pa.uuid():
        return lambda text: UUID(text).bytes
    if pa.types.is_uint64(kind):
        return _number
    if pa.types.is_decimal(kind):
        return lambda data: Decimal(_number(data)).scaleb(-kind.scale, _EXACT)
    return None


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


# By codec: its name in Avro.
CODECS = {
    "none": "null",
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "snappy": "snappy",
    "bzip2": "bzip2",
}
SYNC = 16
# Bytes of the blocks that are decoded at once.
_BATCH_BYTES = 4 << 20


def read_records(source: BinaryIO, target: Target, own: Any = None) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema, one a block or several.

    :param own: the file's Avro schema, if the target's schema was made of it; else the file has that of the target.
    :raises IntegrityError: `source` is not a complete Avro file of records.
    """
    # Without logical types: fastavro makes datetimes of them, and a Kafka timestamp may be after year 9999.
    expected = own or schema_of(stored(target.schema))
    datum = fastavro.parse_schema(json.loads(json.dumps(expected), object_hook=_plain))
    change = record(list(target.schema), leaf, leaf)
    try:
        for blocks in _some(fastavro.block_reader(source)):
            contents = [block.bytes_.getvalue() for block in blocks]
            counts = [block.num_records for block in blocks]
            if own is None and target.schema.equals(RECORD) and (plain := plain_records(contents, counts)) is not None:
                yield plain
                continue
            for content, count in zip(contents, counts, strict=True):
                yield seen_as(_batch(content, count, datum, change, bare(target.schema)), target.schema)
    except ArchiverError:
        # The store failed: the file is not to blame.
        raise
    except Exception as error:
        # So it is if the system failed. bz2 raises an OSError without a number for damaged bytes.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise
        # Each codec's library raises its own error for damaged bytes.
        raise IntegrityError(f"{target.key} is not a complete Avro file of records: {error_in_words(error)}") from error


def read_block(block: bytes, target: Target) -> Iterator[pa.RecordBatch]:
    """The records of one block, with its count, its length and the sync marker.

    :raises IntegrityError: as above.
    """
    file = io.BytesIO()
    schema = fastavro.parse_schema(schema_of(stored(target.schema)))
    fastavro.writer(file, schema, [], CODECS[target.settings.codec], sync_marker=block[-SYNC:])
    file.write(block)
    file.seek(0)
    return read_records(file, target)


def _some(blocks: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield some blocks at a time: a batch of few records costs as much as one of many."""
    waiting: list[Any] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += block.bytes_.getbuffer().nbytes
        if size >= _BATCH_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def _batch(
    content: bytes, count: int, datum: Any, change: Callable[[Any], Any] | None, schema: pa.Schema
) -> pa.RecordBatch:
    data = io.BytesIO(content)
    rows: list[Any] = [fastavro.schemaless_reader(data, datum, None) for _ in range(count)]
    if data.read(1):
        raise ValueError("a block has bytes after its last record")
    return pa.RecordBatch.from_pylist([*map(change, rows)] if change else rows, schema=schema)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}


def read_alone(source: BinaryIO, target: Target) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file's schema, and its records.

    :raises IntegrityError: `source` is no Avro file of records.
    """
    try:
        written: Any = fastavro.reader(source).writer_schema
        record = arrow_field("", parse(Schema(kind="AVRO", text=json.dumps(written)))).type
        # The decoder's types may all be null.
        required = [not isinstance(field["type"], list) for field in written["fields"]]
        fields = [plain(field).with_nullable(not must) for field, must in zip(record, required, strict=True)]
    except (ValueError, EOFError, LookupError, TypeError, ConfigError) as error:
        raise IntegrityError(f"{target.key} is not a complete Avro file of records: {error}") from error
    source.seek(0)
    schema = with_kafkas(pa.schema(fields))
    return schema, read_records(source, replace(target, schema=schema), written)

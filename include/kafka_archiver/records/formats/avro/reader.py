"""Reads Avro objects with fastavro alone, so the reader shares no code with the encoder."""

import io
import json
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from typing import Any, BinaryIO
from uuid import UUID

import fastavro
import pyarrow as pa

from kafka_archiver.messages.errors import ArchiverError, IntegrityError
from kafka_archiver.records.formats.avro.schema import schema_of, stored
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.shared.back import Back, record
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as

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
# More digits than a decimal of 256 bits has.
_EXACT = Context(prec=80)


def read_records(source: BinaryIO, target: Target, own: Any = None) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema, one a block.

    :param own: the file's Avro schema, if the target's schema was made of it; else the file has that of the target.
    :raises IntegrityError: `source` is not a complete Avro file of records.
    """
    # Without logical types: fastavro makes datetimes of them, and a Kafka timestamp may be after year 9999.
    expected = own or schema_of(stored(target.schema))
    datum = fastavro.parse_schema(json.loads(json.dumps(expected), object_hook=_plain))
    change = record(list(target.schema), _leaf, _leaf)
    try:
        for block in fastavro.block_reader(source):
            yield seen_as(_batch(block, datum, change, bare(target.schema)), target.schema)
    except ArchiverError:
        # The store failed: the file is not to blame.
        raise
    except Exception as error:
        # So it is if the system failed. bz2 raises an OSError without a number for damaged bytes.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise
        # Each codec's library raises its own error for damaged bytes.
        raise IntegrityError(f"{target.key} is not a complete Avro file of records: {error!r}") from error


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


def _batch(block: Any, datum: Any, change: Callable[[Any], Any] | None, schema: pa.Schema) -> pa.RecordBatch:
    data = io.BytesIO(block.bytes_.getvalue())
    rows: list[Any] = [fastavro.schemaless_reader(data, datum, None) for _ in range(block.num_records)]
    if data.read(1):
        raise ValueError("a block has bytes after its last record")
    return pa.RecordBatch.from_pylist([*map(change, rows)] if change else rows, schema=schema)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}


def _leaf(kind: pa.DataType) -> Back | None:
    """Return what makes a value of the type of one that fastavro reads without logical types; None: nothing."""
    if kind == pa.uuid():
        return lambda text: UUID(text).bytes
    if pa.types.is_uint64(kind):
        return _number
    if pa.types.is_decimal(kind):
        return lambda data: Decimal(_number(data)).scaleb(-kind.scale, _EXACT)
    return None


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)

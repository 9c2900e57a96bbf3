"""Avro objects back to records. fastavro decodes all of it, and so shares no code with the encoder."""

import io
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa
import zstandard

from kafka_archiver.errors import IntegrityError
from kafka_archiver.formats.avro.schema import PLAIN
from kafka_archiver.formats.base import RECORD, Target

_SYNC = {"type": "fixed", "name": "Sync", "size": 16}
# A container file is itself Avro data: this header, then blocks.
_FILE_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "FileHeader",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": _SYNC},
        ],
    }
)
_BLOCK = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Block",
        "fields": [
            {"name": "count", "type": "long"},
            {"name": "data", "type": "bytes"},
            {"name": "sync", "type": _SYNC},
        ],
    }
)
_DATUM = fastavro.parse_schema(PLAIN)
_DECOMPRESS: dict[bytes, Callable[[bytes], bytes]] = {
    b"null": bytes,
    b"deflate": lambda data: zlib.decompress(data, -zlib.MAX_WBITS),
    b"zstandard": lambda data: zstandard.ZstdDecompressor().decompress(data),
}
_DAMAGE = (ArithmeticError, EOFError, LookupError, MemoryError, TypeError, ValueError, zlib.error, zstandard.ZstdError)


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of `RECORD`, one a block.

    :param source: seekable.
    :raises IntegrityError: it is not a whole Avro file of records.
    """
    try:
        header = _read(source, _FILE_HEADER)
        decompress = _DECOMPRESS[header["meta"]["avro.codec"]]
        while source.read(1):
            source.seek(-1, io.SEEK_CUR)
            yield _batch(_read(source, _BLOCK), decompress, header["sync"])
    except _DAMAGE as error:
        raise IntegrityError(f"{target.key} is not a whole Avro file of records: {error!r}") from error


def _batch(block: dict[str, Any], decompress: Callable[[bytes], bytes], sync: bytes) -> pa.RecordBatch:
    if block["sync"] != sync:
        raise ValueError("a block does not end in the sync marker")
    data = io.BytesIO(decompress(block["data"]))
    rows = [_read(data, _DATUM) for _ in range(block["count"])]
    if data.read(1):
        raise ValueError("a block holds more than its records")
    return pa.RecordBatch.from_pylist(rows, schema=RECORD)


def _read(source: BinaryIO, schema: Any) -> dict[str, Any]:
    value: dict[str, Any] = fastavro.schemaless_reader(source, schema, None)  # type: ignore[assignment]
    return value

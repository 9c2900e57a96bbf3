"""Chunks of test records for the writer, and readers for its objects that use other libraries."""

import gzip
import io
import json
import uuid
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_archiver.messages.policies import BadRecord
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.formats.base import RECORD
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.store.base import Store
from kafka_archiver.store.memory import MemoryStore

HOUR = 3_600_000
LAST_MS = 253_402_300_799_999
NO_TIME = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"


class Row(NamedTuple):
    """A record without topic and partition, in the order of the columns."""

    offset: int
    timestamp: int
    timestamp_type: int = 0
    key: bytes | None = None
    value: bytes | None = b"{}"
    headers: tuple[tuple[str, bytes | None], ...] = ()


def path_of(timestamp: int) -> str:
    """The path of a record, computed without the code under test."""
    if not 0 <= timestamp <= LAST_MS:
        return NO_TIME
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp)
    return f"date={moment.date().isoformat()}/hour={moment.hour:02d}"


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """The rows like a batch from a reader: a slice of a larger batch."""
    schema = pa.schema(list(RECORD)[2:])
    padding = [Row(-7, -7)]
    columns = list(zip(*padding, *rows, *padding, strict=True))
    columns[-1] = tuple([{"key": k, "value": v} for k, v in headers] for headers in columns[-1])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema).slice(1, len(rows))


def cut(rows: Sequence[Row], size: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of `size`, with an empty batch before and after."""
    yield batch([])
    for start in range(0, len(rows), size):
        yield batch(rows[start : start + size])
    yield batch([])


def chunk_of(start: int, end: int, topic: str = "orders") -> Chunk:
    """A chunk of partition 3."""
    return Chunk(topic=topic, partition=3, generation=0, start=start, end=end)


def new_store() -> MemoryStore:
    """A new empty store."""
    return MemoryStore(uuid.uuid4().hex)


def write(
    chunk: Chunk,
    batches: Iterable[pa.RecordBatch],
    store: Store | None = None,
    limits: Limits | None = None,
    bad_record: BadRecord = "fail",
    **settings: Any,
) -> ChunkResult:
    """Write a chunk. Settings are not validated, so that parts may be small."""
    job = WriteJob(archive="a", settings=Settings().model_copy(update=settings), bad_record=bad_record)
    return write_chunk(chunk, batches, job, store or new_store(), limits or Limits())


def facts(result: ChunkResult) -> dict[str, Any]:
    """The parts of a result that must be reproducible: everything except upload ids."""
    objects = [o.entry("").model_dump() for o in result.objects]
    parts = [[(p.crc32, p.size) for p in o.upload.parts] for o in result.objects]
    return {"account": result.account.model_dump(), "objects": objects, "parts": parts}


def read_values(data: bytes) -> list[bytes]:
    """The values in an object of gzipped lines."""
    return gzip.decompress(data).splitlines()


def read_json(data: bytes) -> list[Row]:
    """The records in an object of gzipped JSON lines."""

    def field(line: dict[str, Any], name: str) -> bytes | None:
        if f"{name}_base64" in line:
            return b64decode(line[f"{name}_base64"])
        text: str | None = line[name]
        return None if text is None else text.encode()

    return [
        Row(
            offset=line["offset"],
            timestamp=line["timestamp"],
            timestamp_type=line["timestamp_type"],
            key=field(line, "key"),
            value=field(line, "value"),
            headers=tuple((h["key"], field(h, "value")) for h in line["headers"]),
        )
        for line in map(json.loads, gzip.decompress(data).splitlines())
    ]


def read_parquet(data: bytes) -> list[Row]:
    """The records in a Parquet file."""
    table = pq.read_table(io.BytesIO(data))
    columns = [table.column(name) for name in Row._fields]
    # Python's datetime does not have all of Kafka's timestamps.
    columns[1] = columns[1].cast(pa.timestamp("ms")).cast(pa.int64())
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [Row(*fields, headers=tuple((h["key"], h["value"]) for h in headers)) for *fields, headers in rows]

"""Objects as other tools write them, made without our encoders."""

import gzip
import io
import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq


class Sent(NamedTuple):
    """A record that Kafka had."""

    offset: int
    value: dict[str, Any]
    timestamp: int = 1_763_700_000_000


def sent(offsets: Sequence[int]) -> list[Sent]:
    return [Sent(offset, {"n": offset, "text": f"record {offset}"}) for offset in offsets]


SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "key", "type": ["null", "string"]},
        {"name": "value", "type": ["null", SCHEMA]},
        {
            "name": "metadata",
            "type": {
                "type": "record",
                "name": "Metadata",
                "fields": [
                    {"name": "timestamp", "type": "long"},
                    {"name": "topic", "type": "string"},
                    {"name": "partition", "type": "int"},
                    {"name": "offset", "type": "long"},
                ],
            },
        },
    ],
}


def enveloped(record: Sent, topic: str, partition: int) -> dict[str, Any]:
    metadata = {"timestamp": record.timestamp, "topic": topic, "partition": partition, "offset": record.offset}
    return {"key": f"k{record.offset}", "value": record.value, "metadata": metadata}


def json_lines(values: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def avro(values: Sequence[Any], schema: Any = SCHEMA) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, values, codec="snappy")
    return file.getvalue()


def parquet(values: Sequence[Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(values)), file, compression="snappy")
    return file.getvalue()


def encoded(form: str, values: Sequence[Any], schema: Any = SCHEMA) -> bytes:
    """:param form: json, json.gz, avro or parquet."""
    if form == "avro":
        return avro(values, schema)
    if form == "parquet":
        return parquet(values)
    return gzip.compress(json_lines(values)) if form.endswith("gz") else json_lines(values)


def mak(topic: str, partition: int, records: Sequence[Sent]) -> bytes:
    """kafkatos3's file: one gzip member."""
    header = json.dumps(
        {"topic": topic, "partition": partition, "startoffset": records[0].offset, "starttime": 1_763_700_000}
    ).encode()
    body = b""
    for record in records:
        value = json.dumps(record.value).encode()
        body += struct.pack(">Q", 1) + b"k" + struct.pack(">Q", len(value)) + value + struct.pack(">Q", record.offset)
    size = 3 + 8 + 8 + 8 + len(header) + len(body)
    head = b"MAK" + struct.pack(">QQQ", records[-1].offset, size, len(header)) + header
    return gzip.compress(head + body)


def blocks(number: int, values: Sequence[bytes], each: int) -> tuple[bytes, bytes]:
    """DeviantArt's file of gzip members, and its index: it counts records on from the number in the name."""
    data, chunks = b"", []
    for start in range(0, len(values), each):
        lines = b"".join(value + b"\n" for value in values[start : start + each])
        member = gzip.compress(lines)
        chunks.append(
            {
                "first_record_offset": number + start,
                "num_records": len(values[start : start + each]),
                "byte_offset": len(data),
                "byte_length": len(member),
                "byte_length_uncompressed": len(lines),
            }
        )
        data += member
    return data, json.dumps({"chunks": chunks}).encode()

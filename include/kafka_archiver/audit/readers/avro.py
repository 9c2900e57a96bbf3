"""Avro object container files, read by fastavro."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import fastavro

from kafka_archiver.audit.readers.base import Seen
from kafka_archiver.plan import Settings


def records(file: BinaryIO, settings: Settings) -> Iterator[Seen]:  # noqa: ARG001 - the file names its codec
    """The records of an object."""
    blocks: Any = fastavro.block_reader(file)
    # Without logical types: a Kafka timestamp may be after year 9999, the last of Python's datetime.
    schema = fastavro.parse_schema(json.loads(blocks.metadata["avro.schema"], object_hook=_plain))
    for block in blocks:
        data = io.BytesIO(block.bytes_.getvalue())
        for _ in range(block.num_records):
            record: Any = fastavro.schemaless_reader(data, schema, None)
            yield Seen(record["topic"], record["partition"], record["offset"], record["timestamp"])


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}

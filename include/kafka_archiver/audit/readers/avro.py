"""Avro object container files, read by fastavro."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from kafka_archiver.audit.readers.base import RecordCoordinates, coordinate_columns, coordinates
from kafka_archiver.model.plan import Settings


def records(file: BinaryIO, settings: Settings) -> Iterator[RecordCoordinates]:
    """The records of an object."""
    columns = coordinate_columns(settings)
    for record in _records(file):
        yield coordinates(record, columns)


def values(file: BinaryIO, settings: Settings) -> int:  # noqa: ARG001 - the file names its codec
    """The number of records of an object."""
    return sum(1 for _ in _records(file))


def _records(file: BinaryIO) -> Iterator[Any]:
    # Of the extra `avro`, which archives of other formats do without.
    import fastavro

    blocks: Any = fastavro.block_reader(file)
    # Without logical types: a Kafka timestamp may be after year 9999, the last of Python's datetime.
    schema = fastavro.parse_schema(json.loads(blocks.metadata["avro.schema"], object_hook=_plain))
    for block in blocks:
        data = io.BytesIO(block.bytes_.getvalue())
        for _ in range(block.num_records):
            yield fastavro.schemaless_reader(data, schema, None)
        if data.read(1):
            raise ValueError("a block has bytes after its last record")


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}

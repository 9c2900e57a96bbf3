"""Avro object container files, read by fastavro."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from kafka_archiver.audit.readers.base import RecordCoordinates, coordinate_columns, coordinates
from kafka_archiver.model.settings import Settings


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
    schema = schema_of(blocks)
    for block in blocks:
        data = io.BytesIO(block.bytes_.getvalue())
        for _ in range(block.num_records):
            yield fastavro.schemaless_reader(data, schema, None)
        if data.read(1):
            raise ValueError("a block has bytes after its last record")


def schema_of(blocks: Any) -> Any:
    """Return the schema of an open file without logical types: Kafka's times may be after Python's last year, 9999."""
    import fastavro

    def plain(schema: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in schema.items() if name != "logicalType"}

    return fastavro.parse_schema(json.loads(blocks.metadata["avro.schema"], object_hook=plain))

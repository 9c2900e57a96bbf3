"""Avro objects back to records. fastavro reads all of it, and so shares no code with the encoder."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa

from kafka_archiver.errors import ArchiverError, IntegrityError
from kafka_archiver.formats.avro.schema import schema_of, stored
from kafka_archiver.formats.base import Target


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of the target's schema, one a block.

    :raises IntegrityError: it is not a whole Avro file of records.
    """
    # Not the file's own schema: its logical types make dates, which end before Kafka's times do.
    datum = fastavro.parse_schema(json.loads(json.dumps(schema_of(stored(target.schema))), object_hook=_plain))
    try:
        for block in fastavro.block_reader(source):
            yield _batch(block, datum, target.schema)
    except (ArchiverError, OSError):
        # The store's, not the file's.
        raise
    except Exception as error:
        # Of damage each codec's library raises an error of its own.
        raise IntegrityError(f"{target.key} is not a whole Avro file of records: {error!r}") from error


def _batch(block: Any, datum: Any, schema: pa.Schema) -> pa.RecordBatch:
    data = io.BytesIO(block.bytes_.getvalue())
    rows: list[Any] = [fastavro.schemaless_reader(data, datum, None) for _ in range(block.num_records)]
    if data.read(1):
        raise ValueError("a block holds more than its records")
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "logicalType"}

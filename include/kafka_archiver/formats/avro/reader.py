"""Avro objects back to records. fastavro reads all of it, and so shares no code with the encoder."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import fastavro
import pyarrow as pa

from kafka_archiver.errors import ArchiverError, IntegrityError
from kafka_archiver.formats.avro.schema import PLAIN
from kafka_archiver.formats.base import RECORD, Target

# Not the file's own schema: its logical types make dates, which end before Kafka's times do.
_DATUM = fastavro.parse_schema(PLAIN)


def read_records(source: BinaryIO, target: Target) -> Iterator[pa.RecordBatch]:
    """Batches of `RECORD`, one a block.

    :raises IntegrityError: it is not a whole Avro file of records.
    """
    try:
        for block in fastavro.block_reader(source):
            yield _batch(block)
    except (ArchiverError, OSError):
        # The store's, not the file's.
        raise
    except Exception as error:
        # Of damage each codec's library raises an error of its own.
        raise IntegrityError(f"{target.key} is not a whole Avro file of records: {error!r}") from error


def _batch(block: Any) -> pa.RecordBatch:
    data = io.BytesIO(block.bytes_.getvalue())
    rows: list[Any] = [fastavro.schemaless_reader(data, _DATUM, None) for _ in range(block.num_records)]
    if data.read(1):
        raise ValueError("a block holds more than its records")
    return pa.RecordBatch.from_pylist(rows, schema=RECORD)

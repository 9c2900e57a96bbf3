"""Dead letters: records that the archive's format cannot hold, as JSON lines of all that Kafka had, with the reason.

A line is one of `jsonl` with `content: record` and a last key `error`; read them with that format.
"""

import orjson
import pyarrow as pa

from kafka_archiver.formats.base import Buffer, Target
from kafka_archiver.formats.jsonl import LineEncoder
from kafka_archiver.formats.jsonl_records import record_lines

CODEC, EXTENSION = "gzip", ".jsonl.gz"
# Beside the columns of `content: record`.
ERROR = pa.field("error", pa.string(), nullable=False)


def encoder(topic: str, partition: int, key: str) -> LineEncoder:
    """A new encoder, for batches with a column `error`."""
    return LineEncoder(Target(topic=topic, partition=partition, content="record", codec=CODEC, key=key), _lines)


def _lines(batch: pa.RecordBatch, target: Target) -> Buffer:
    lines = memoryview(record_lines(batch, target)).tobytes().splitlines()
    errors = batch.column("error").to_pylist()
    return b"".join(
        b'%s,"error":%s}\n' % (line[:-1], orjson.dumps(error)) for line, error in zip(lines, errors, strict=True)
    )

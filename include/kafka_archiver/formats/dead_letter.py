"""Dead letters: records that the archive's format cannot hold, as JSON lines of all that Kafka had, with the reason.

A line is one of `jsonl` with `content: record` and a last key `error`; read them with that format.
"""

from collections.abc import Iterator

import orjson
import pyarrow as pa

from kafka_archiver.formats.base import SCHEMAS, Buffer, Target
from kafka_archiver.formats.jsonl.encoder import LineEncoder
from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.plan import Settings

SETTINGS = Settings(format="jsonl", codec="gzip", content="record")
EXTENSION = ".jsonl.gz"
# Beside the columns of `content: record`.
ERROR = pa.field("error", pa.string(), nullable=False)


def encoder(topic: str, partition: int, key: str) -> LineEncoder:
    """A new encoder, for batches with a column `error`."""
    schema = SCHEMAS[SETTINGS.content]
    return LineEncoder(Target(topic=topic, partition=partition, key=key, settings=SETTINGS, schema=schema), _lines)


def _lines(batch: pa.RecordBatch, target: Target) -> Iterator[Buffer]:
    errors = iter(batch.column("error").to_pylist())
    for lines in record_lines(batch, target):
        yield b"".join([b'%s,"error":%s}\n' % (line[:-2], orjson.dumps(next(errors))) for line in lines])

"""Dead letters: rejected records as JSON lines, with everything that Kafka had and the reason.

A line is that of `format: jsonl`, `content: record`, with `error` as an additional last key. The same reader reads it.
"""

from collections.abc import Iterator

import orjson
import pyarrow as pa

from kafka_archiver.formats.base import SCHEMAS, Buffer, Target
from kafka_archiver.formats.jsonl.records import record_lines
from kafka_archiver.formats.shared.stream import StreamEncoder
from kafka_archiver.plan import Settings

SETTINGS = Settings(format="jsonl", codec="gzip", content="record")
EXTENSION = ".jsonl.gz"
# An additional column of the batches.
ERROR = pa.field("error", pa.string(), nullable=False)


def encoder(topic: str, partition: int, key: str) -> StreamEncoder:
    """A new encoder, for batches with a column `error`."""
    schema = SCHEMAS[SETTINGS.content]
    return StreamEncoder(Target(topic=topic, partition=partition, key=key, settings=SETTINGS, schema=schema), _lines)


def _lines(batch: pa.RecordBatch, target: Target) -> Iterator[Buffer]:
    errors = iter(batch.column("error").to_pylist())
    for lines in record_lines(batch, target):
        yield b"".join([b'%s,"error":%s}\n' % (line[:-2], orjson.dumps(next(errors))) for line in lines])

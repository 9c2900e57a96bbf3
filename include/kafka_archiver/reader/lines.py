"""Batches of a reader as lines of JSON."""

import pyarrow as pa

from kafka_archiver.model.plan import Settings
from kafka_archiver.records.formats.base import Target
from kafka_archiver.records.formats.jsonl.objects import object_lines
from kafka_archiver.values.ranges import TopicPartition


def json_lines(batch: pa.RecordBatch, name: TopicPartition) -> bytes:
    """Return a line for each row, as `format: jsonl`, `content: record` writes it."""
    target = Target(topic=name.topic, partition=name.partition, key="", settings=Settings(), schema=batch.schema)
    return b"".join(bytes(piece) for piece in object_lines(batch, target))

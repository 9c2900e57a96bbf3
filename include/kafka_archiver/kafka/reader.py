"""The native reader: one chunk straight from the brokers through librdkafka, as Arrow batches.

It sees what Spark's Kafka source sees, and stops where the chunk ends, whether a record is there or not.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.errors import PolicyError, TransientError
from kafka_archiver.formats.base import RECORD, VALUE
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.java import native_properties
from kafka_archiver.plan import Chunk, Settings

BATCH = 2000
# Without a record, or word that there is none, for so long, the brokers are taken for gone.
PATIENCE_SECONDS = 120.0
_TUNING = {
    "queued.max.messages.kbytes": 65536,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.max.bytes": 64 << 20,
    "fetch.wait.max.ms": 50,
    # librdkafka's default of a second makes a reader that outruns the fetcher wait for it most of the time.
    "fetch.queue.backoff.ms": 5,
    "check.crcs": True,
}
_RECORD = pa.schema([RECORD.field(name) for name in RECORD.names if name not in ("topic", "partition")])


def read_chunk(
    properties: Mapping[str, str], group: str, chunk: Chunk, settings: Settings, patience: float = PATIENCE_SECONDS
) -> Iterator[pa.RecordBatch]:
    """The records of a chunk in offset order: the columns of `VALUE`, or of `RECORD` without topic and partition.

    :param properties: librdkafka's client properties.
    :param group: whose rights to use; nothing is committed, and the group is not joined.
    :param patience: seconds without any progress.
    :raises PolicyError: Kafka does not have the chunk's start any more.
    :raises TransientError: the brokers do not answer.
    """
    consumer = confluent_kafka.Consumer(
        {
            **_TUNING,
            # Not much is fetched that is behind the chunk's end.
            "queued.min.messages": min(100_000, max(1, chunk.end - chunk.start)),
            **native_properties(properties),
            "group.id": group,
            "isolation.level": settings.isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # An offset that is gone is an error, never a jump.
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "log_level": 3,
        }
    )
    to_batch = _record_batch if settings.content == "record" else _value_batch
    try:
        consumer.assign([confluent_kafka.TopicPartition(chunk.topic, chunk.partition, chunk.start)])
        deadline = time.monotonic() + patience
        while True:
            messages = consumer.consume(BATCH, timeout=1.0)
            if not messages:
                if time.monotonic() > deadline:
                    brokers = properties["bootstrap.servers"]
                    raise TransientError(
                        f"no answer from the Kafka brokers at {brokers} within {patience:.0f} s while reading {chunk}"
                    )
                continue
            deadline = time.monotonic() + patience
            wanted, ended = _inside(messages, chunk, properties["bootstrap.servers"])
            if wanted:
                yield to_batch(wanted)
            if ended:
                return
    finally:
        consumer.close()


def _inside(messages: list[Any], chunk: Chunk, brokers: str) -> tuple[list[Any], bool]:
    """The messages of the chunk, and whether its end has been reached: by a later record, or by the end of the log."""
    last = messages[-1]
    if last.error() is None and last.offset() < chunk.end - 1 and all(m.error() is None for m in messages):
        return messages, False
    wanted = []
    for message in messages:
        error = message.error()
        if error is None and message.offset() < chunk.end:
            wanted.append(message)
        elif error is None or error.code() == KafkaError._PARTITION_EOF:
            if message.offset() >= chunk.end:
                return wanted, True
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise PolicyError(
                f"Kafka does not have the start of {chunk} any more: retention overtook the run while it was read; "
                "clear the task `archive` to see which records, and `policies.lost_offsets` decides"
            )
        elif not error.retriable():
            raise translate(error, f"read {chunk}", brokers)
    return wanted, bool(wanted) and wanted[-1].offset() == chunk.end - 1


def _value_batch(messages: list[Any]) -> pa.RecordBatch:
    columns = [_offsets(messages), _timestamps(messages), pa.array([m.value() for m in messages], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=VALUE)


def _record_batch(messages: list[Any]) -> pa.RecordBatch:
    # librdkafka counts 0 none, 1 create, 2 append; Kafka itself one less.
    types = np.fromiter((m.timestamp()[0] - 1 for m in messages), np.int32, len(messages))
    headers = [[{"key": k, "value": v} for k, v in m.headers() or ()] for m in messages]
    columns = [
        _offsets(messages),
        _timestamps(messages),
        pa.array(types),
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([m.value() for m in messages], pa.binary()),
        pa.array(headers, _RECORD.field("headers").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_RECORD)


def _offsets(messages: list[Any]) -> pa.Array:
    return pa.array(np.fromiter((m.offset() for m in messages), np.int64, len(messages)))


def _timestamps(messages: list[Any]) -> pa.Array:
    return pa.array(np.fromiter((m.timestamp()[1] for m in messages), np.int64, len(messages)))

"""Records of every kind, stores that keep them whole, and a topic as a plain consumer sees it."""

import random
from typing import Any, NamedTuple

import confluent_kafka

from tests.support.topics import DAY, HOUR, Record

YEAR_2099 = 4_070_908_800_000
TIMES = [DAY, DAY - 1, DAY + HOUR, -1, 1, YEAR_2099, DAY - 400 * 24 * HOUR]
KEYS = [None, b"", b"k", b"\xff\x00\xfe", b"k" * 300]
VALUES = [None, b"", b"v", b"\x00\xff\n\r,\"'", b'{"a": 1}', "ü→".encode(), b"x" * 5000]
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("a", b"1")],
    [("a", None), ("a", b""), ("a", None), ("b", b"\xff")],
    [("", b"empty name"), ("z", b"1"), ("a", b"2"), ("ü", b"\n")],
]
# Each stores whole records; `both` has decoded columns beside them.
STORES: dict[str, dict[str, Any]] = {
    "jsonl": {"format": "jsonl", "content": "record"},
    "avro": {"format": "avro", "content": "record"},
    "parquet": {"format": "parquet", "content": "record"},
    "csv": {"format": "csv", "content": "record"},
    "block_gzip": {"format": "block_gzip", "content": "record"},
    "mak": {"format": "mak", "content": "record", "options": {"version": 2}},
    "sealed": {"format": "jsonl", "content": "record", "encryption": {"client": {"connection": "x"}}},
    "both": {"format": "parquet", "content": "both"},
}


def odd_records(seed: int, partitions: int = 2, count: int = 60) -> list[Record]:
    """Return records of every kind; some are equal."""
    draw = random.Random(seed)
    return [
        Record(n % partitions, draw.choice(TIMES), draw.choice(VALUES), draw.choice(KEYS), draw.choice(HEADERS))
        for n in range(count)
    ]


def archiver_options(store: str, **settings: Any) -> dict[str, Any]:
    """Return the options of an `Archiver` with one of `STORES`."""
    options: dict[str, Any] = {
        "policies": {"bad_record": "dead_letter"},
        "settings": {**STORES[store], "chunk_records": 50, **settings},
    }
    if store == "both":
        # Records that are no JSON become dead letters, which a restore takes too.
        options["source"] = {"value": {"decode": "json", "schema": [{"name": "a", "type": "int64"}]}}
    if store == "sealed":
        options["master_keys"] = {"secret": "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="}
    return options


class Content(NamedTuple):
    """A record without its place. `timestamp`: -1 for none."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Consumed(NamedTuple):
    """A record and its offset."""

    offset: int
    content: Content


def consumed(brokers: str, topic: str, partition: int, isolation: str = "read_committed") -> list[Consumed]:
    """Return the records of a partition as a plain consumer sees them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    records: list[Consumed] = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None, f"{topic}[{partition}]: the broker does not answer"
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                return records
            kind, time = message.timestamp()
            # librdkafka gives 0 for a record without a time.
            stamp = -1 if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else time
            headers = tuple(message.headers() or ())
            records.append(Consumed(message.offset(), Content(message.key(), message.value(), headers, stamp)))
    finally:
        consumer.close()


def contents(brokers: str, topic: str, partition: int, isolation: str = "read_committed") -> list[Content]:
    """Return the records of a partition without their offsets."""
    return [record.content for record in consumed(brokers, topic, partition, isolation)]

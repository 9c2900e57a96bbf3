"""Topics on the bench's broker. They are filled once and kept for later runs."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

_LEADER_SECONDS = 60
_PRODUCER = {"linger.ms": 50, "batch.size": 1 << 20, "queue.buffering.max.messages": 200_000, "acks": 1}


class Record(NamedTuple):
    """A record to produce."""

    partition: int
    timestamp: int
    key: bytes
    value: bytes


def length(brokers: str, topic: str, partitions: int) -> int:
    """Return the number of offsets of a topic; 0 if it does not exist. Wait until its partitions have leaders.

    :raises RuntimeError: the broker does not say it within a minute.
    """
    admin = AdminClient({"bootstrap.servers": brokers})
    if topic not in admin.list_topics(timeout=10).topics:
        return 0
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = {TopicPartition(topic, partition): latest for partition in range(partitions)}
    until = time.monotonic() + _LEADER_SECONDS
    while True:
        # One request for all partitions: one for each takes seconds for thousands.
        answers = admin.list_offsets(ends, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=30)
        try:
            return sum(answer.result().offset for answer in answers.values())
        except KafkaException as error:
            # After its start a broker answers NOT_LEADER_FOR_PARTITION for a while.
            if time.monotonic() > until:
                raise RuntimeError(f"the ends of topic {topic} are not known: {error}") from error
            time.sleep(0.5)


def fill(brokers: str, topic: str, partitions: int, records: Iterator[Record], number: int) -> None:
    """Create a topic with exactly these records, unless it has that many already."""
    present = length(brokers, topic, partitions)
    if present == number:
        return
    admin = AdminClient({"bootstrap.servers": brokers})
    if present:
        raise RuntimeError(f"topic {topic} has {present} records, expected {number}: run with --fresh")
    if topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(timeout=30)
    producer = Producer({"bootstrap.servers": brokers, **_PRODUCER})
    for sent, record in enumerate(records):
        while True:
            try:
                producer.produce(topic, record.value, record.key, record.partition, timestamp=record.timestamp)
                break
            except BufferError:
                producer.poll(0.05)
        if not sent % 1000:
            producer.poll(0)
    if left := producer.flush(120):
        raise RuntimeError(f"the broker did not confirm {left} records")
    if (present := length(brokers, topic, partitions)) != number:
        raise RuntimeError(f"topic {topic} has {present} records, expected {number}")

"""Topics and records on a real broker."""

import ctypes
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.support.waiting import until

HOUR = 3_600_000
# 2026-11-21T00:00:00Z
DAY = 1_795_219_200_000

Headers = Sequence[tuple[str, bytes | None]]


class Record(NamedTuple):
    """A record to produce."""

    partition: int
    timestamp: int
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()


def new_topic(
    brokers: str, partitions: int = 1, name: str | None = None, replicas: Sequence[int] = (), **config: str
) -> str:
    """A new topic. Config keys have underscores for dots.

    :param replicas: the brokers that have each partition, first its preferred leader; by default any one of them.
    """
    topic = name or f"t-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": brokers})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    if replicas:
        declared = NewTopic(topic, partitions, replica_assignment=[list(replicas)] * partitions, config=settings)
    else:
        declared = NewTopic(topic, partitions, 1, config=settings)
    future = admin.create_topics([declared])[topic]
    future.result(timeout=30)
    # The controller has created it; wait until the broker's metadata have it too.
    until(lambda: topic in admin.list_topics(timeout=10).topics)
    return topic


def produce(brokers: str, topic: str, records: Iterable[Record], transaction: str | None = None) -> None:
    """Produce records and wait until the broker has them. `transaction`: "commit" or "abort"."""
    settings: dict[str, str | int] = {"bootstrap.servers": brokers, "linger.ms": 5}
    if transaction:
        settings["transactional.id"] = uuid.uuid4().hex
    producer = Producer(settings)
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    send(producer, topic, records)
    if transaction == "commit":
        producer.commit_transaction(30)
    elif transaction == "abort":
        producer.abort_transaction(30)


def send(producer: Producer, topic: str, records: Iterable[Record]) -> None:
    """Produce records and wait until the broker has them."""
    failures: list[str] = []
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp=record.timestamp,
                    headers=list(record.headers),
                    on_delivery=lambda error, _: failures.append(str(error)) if error else None,
                )
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
    assert not failures, failures[:3]


def produce_raw(
    brokers: str, topic: str, partition: int, timestamp: int, value: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> None:
    """Produce a record with any bytes (except NUL) as header keys, which other clients can, with librdkafka's C API."""
    libraries = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*")
    library, pointer, size = ctypes.CDLL(str(next(libraries))), ctypes.c_void_p, ctypes.c_size_t
    library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = pointer
    message = ctypes.create_string_buffer(512)
    conf = pointer(library.rd_kafka_conf_new())
    assert library.rd_kafka_conf_set(conf, b"bootstrap.servers", brokers.encode(), message, size(512)) == 0, (
        message.value
    )
    producer = pointer(library.rd_kafka_new(0, conf, message, size(512)))
    assert producer, message.value
    # rd_kafka_vtype_t: 1 topic, 3 partition, 4 value, 7 flags (2: copy the value), 8 timestamp, 9 header, 0 the end.
    fields = [ctypes.c_int(1), topic.encode(), ctypes.c_int(3), ctypes.c_int32(partition)]
    fields += [ctypes.c_int(4), value, size(len(value)), ctypes.c_int(7), ctypes.c_int(2)]
    fields += [ctypes.c_int(8), ctypes.c_int64(timestamp)]
    for key, content in headers:
        fields += [ctypes.c_int(9), key, content, ctypes.c_ssize_t(len(content))]
    assert library.rd_kafka_producev(producer, *fields, ctypes.c_int(0)) == 0
    assert library.rd_kafka_flush(producer, 30_000) == 0
    library.rd_kafka_destroy(producer)


def set_topic(brokers: str, topic: str, setting: str, value: str) -> None:
    """Set one of a topic's settings."""
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    # The answer needs the client alive.
    admin = AdminClient({"bootstrap.servers": brokers})
    admin.incremental_alter_configs([resource])[resource].result(30)


def delete_records(brokers: str, topic: str, before: int) -> None:
    """Remove the records of partition 0 before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(timeout=30)

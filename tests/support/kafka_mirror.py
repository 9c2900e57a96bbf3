"""A real broker with the twin beside it: each change goes to both, and their states must agree."""

import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress

import confluent_kafka
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import ArchiverError, TransientError
from kafka_archiver.values.ranges import TopicPartition
from tests.support.kafka_twin import KafkaTwin
from tests.support.topics import Record, new_topic, produce, send
from tests.support.waiting import until

# Transactional producers start slowly, so later sequences use them again.
_producers: dict[tuple[str, str], Producer] = {}
ISOLATIONS = ("read_committed", "read_uncommitted")


class KafkaMirror(KafkaTwin):
    """The twin of one real broker, for topics that are created through it.

    :ivar cluster: tells what is true.
    """

    can_cut_leaders = False
    # The brokers of each partition; empty: the only one.
    replicas: tuple[int, ...] = ()

    def __init__(self, brokers: str, clock: Callable[[], int]) -> None:
        super().__init__(lambda: time.time_ns() // 1_000_000, clock)
        self.brokers = brokers
        self.cluster = self._connect()
        self._admin = AdminClient({"bootstrap.servers": brokers})
        self._begun: set[str] = set()
        self._compacted: set[TopicPartition] = set()

    def _connect(self) -> Cluster:
        """A new client: it has no outdated metadata."""
        return Cluster({"bootstrap.servers": self.brokers})

    def create_topic(self, name: str, partitions: int = 1) -> None:
        # A record that is a second later starts a new segment, so that compaction has closed segments.
        new_topic(self.brokers, partitions, name, self.replicas, segment_ms="1000")
        until(lambda: self._answers([TopicPartition(name, number) for number in range(partitions)]))
        until(lambda: self._takes_offsets(TopicPartition(name, 0)))
        super().create_topic(name, partitions)

    def _new_id(self, name: str) -> str:
        return self.cluster.topics([name])[0].id

    def _answers(self, names: list[TopicPartition]) -> bool:
        """Return True if the broker is the leader of these empty partitions already."""
        known = self._admin.list_topics(names[0].topic, timeout=10).topics[names[0].topic].partitions
        if any(n.partition not in known or known[n.partition].leader < 0 for n in names):
            return False
        try:
            self.cluster = self._connect()
            return self.cluster.log_ends(names, "read_committed") == dict.fromkeys(names, 0)
        except ArchiverError:
            return False

    def _takes_offsets(self, name: TopicPartition) -> bool:
        """Return True if a new broker has its group coordinator already."""
        try:
            self.cluster.move_group("mirror", {name: 0})
        except TransientError:
            return False
        return True

    def delete_topic(self, name: str) -> None:
        names = [n for t in self.cluster.topics([name]) for n in t.names]
        self._admin.delete_topics([name])[name].result(30)
        until(lambda: name not in self._admin.list_topics(timeout=10).topics)
        for group in self.groups:
            until(lambda: not any(self.cluster.committed(group, names).values()))  # noqa: B023 - asked at once
        super().delete_topic(name)
        self._compacted = {n for n in self._compacted if n.topic != name}

    def add_partition(self, name: str) -> None:
        super().add_partition(name)
        [topic] = super().topics([name])
        assignment = {"replica_assignment": [list(self.replicas)]} if self.replicas else {}
        self._admin.create_partitions([NewPartitions(name, topic.partitions, **assignment)])[name].result(30)
        until(lambda: self._answers([topic.names[-1]]))

    def elect(self, name: TopicPartition, cut: int = 0) -> None:
        """Do nothing: a single broker has no elections."""

    def produce(self, topic: str, records: Iterable[Record], transaction: str | None = None) -> None:
        produced = list(records)
        if transaction is None:
            produce(self.brokers, topic, produced)
        else:
            self._produce_in(transaction, topic, produced)
        super().produce(topic, produced, transaction)
        self._agree(topic)

    def _produce_in(self, transaction: str, topic: str, records: list[Record]) -> None:
        producer = self._producer(transaction)
        # Update the metadata: partitions may have been added.
        producer.list_topics(topic, timeout=30)
        if transaction not in self._begun:
            producer.begin_transaction()
            self._begun.add(transaction)
        send(producer, topic, records)

    def _producer(self, transaction: str) -> Producer:
        known = _producers.get((self.brokers, transaction))
        if known is None:
            known = _producers[self.brokers, transaction] = self._new_producer(transaction)
        return known

    def _new_producer(self, transaction: str) -> Producer:
        identity = f"{transaction}-{uuid.uuid4().hex}"
        settings = {"bootstrap.servers": self.brokers, "transactional.id": identity, "linger.ms": 5}
        # A long timeout: the model decides when a transaction ends.
        producer = Producer({**settings, "transaction.timeout.ms": 900_000})
        producer.init_transactions(30)
        return producer

    def end_transaction(self, transaction: str, commit: bool) -> None:
        producer = self._producer(transaction)
        self._begun.discard(transaction)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
        super().end_transaction(transaction, commit)
        for topic in self._ids:
            self._agree(topic)

    def delete_records(self, name: TopicPartition, before: int) -> None:
        place = confluent_kafka.TopicPartition(name.topic, name.partition, before)
        for future in self._admin.delete_records([place]).values():
            future.result(30)
        super().delete_records(name, before)
        self._agree(name.topic)

    def delete_group(self, group: str) -> None:
        # The group may not exist.
        with suppress(KafkaException):
            self._admin.delete_consumer_groups([group])[group].result(30)
        super().delete_group(group)

    def compact(self, name: TopicPartition, before: int) -> None:
        """Let the real log cleaner compact, and take over its result; ignores `before`. Waits for a few seconds."""
        first = self.log(name).high
        times = [e.timestamp for e in self.log(name).entries if e.timestamp < 4_000_000_000_000] or [0]
        for later in (2000, 4000, 6000):
            self.produce(name.topic, [Record(name.partition, max(times) + later, b'{"probe": %d}' % later, b"probe")])
        self._configure(name.topic, "compact")
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline and first in self._present(name):
            time.sleep(0.2)
        self._configure(name.topic, "delete")
        self._compacted |= {n for t in super().topics([name.topic]) for n in t.names}
        self.refresh()

    def _configure(self, topic: str, policy: str) -> None:
        values = {"cleanup.policy": policy, "min.cleanable.dirty.ratio": "0.0001", "delete.retention.ms": "100000000"}
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in values.items()]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(30)

    def refresh(self) -> None:
        """Take over the records that the cleaner has removed."""
        for name in sorted(self._compacted):
            log, present = self.log(name), self._present(name)
            for offset in range(log.start, log.high):
                if log.entries[offset].record is not None and offset not in present:
                    log.entries[offset].compacted = True
                    log.entries[offset].vanish(self._now())

    def _present(self, name: TopicPartition) -> set[int]:
        """The offsets of all records that a consumer reads."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": "mirror",
                "isolation.level": "read_uncommitted",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
            }
        )
        offsets = set()
        try:
            consumer.assign([confluent_kafka.TopicPartition(name.topic, name.partition, self.log(name).start)])
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                for message in consumer.consume(1, 5):
                    if message.error() is None:
                        offsets.add(message.offset())
                    elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                        return offsets
                    else:
                        raise KafkaException(message.error())
            raise AssertionError(f"the consumer did not reach the end of {name} in time")
        finally:
            consumer.close()

    def _agree(self, topic: str) -> None:
        """Wait until both have the same watermarks: transaction markers arrive with a delay."""
        [listed] = super().topics([topic])
        for isolation in ISOLATIONS:
            own_ends = super().log_ends(listed.names, isolation)
            until(lambda: self.cluster.log_ends(listed.names, isolation) == own_ends)  # noqa: B023 - asked at once
        assert self.cluster.log_starts(listed.names) == super().log_starts(listed.names)

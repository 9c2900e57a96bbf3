"""The demo's topic: made anew, filled, compacted; and where the archive's group stands in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.demo.errors import DemoError
from scripts.demo.orders import HOUR, Batch, Event
from scripts.demo.produced import Produced, Sent
from scripts.demo.tell import Look, until

Client: TypeAlias = dict[str, str | int | float | bool]
PARTITIONS = 4
# A broker that has just started answers so.
NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
SETTINGS = {
    "cleanup.policy": "compact",
    # Only whole segments are compacted, and an hour of the stream makes one.
    "segment.ms": str(HOUR),
    "min.cleanable.dirty.ratio": "0.01",
}


class Topic:
    def __init__(self, brokers: str, name: str, group: str) -> None:
        self.name, self.group = name, group
        self._client: Client = {"bootstrap.servers": brokers, "log_level": 2}
        self._admin = AdminClient(self._client)

    def remove(self) -> bool:
        """With its group. Returns whether there was one."""
        until(self._remove_group, seconds=60)
        if self.name not in self._admin.list_topics(timeout=10).topics:
            return False
        self._admin.delete_topics([self.name])[self.name].result(30)
        return True

    def _remove_group(self) -> Look[bool]:
        try:
            self._admin.delete_consumer_groups([self.group])[self.group].result(30)
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() in NOT_YET:
                return None, f"group {self.group}: its coordinator is being elected"
            if reason.code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
        return True, ""

    def create(self) -> None:
        def create() -> Look[bool]:
            try:
                new = NewTopic(self.name, PARTITIONS, 1, config=SETTINGS)
                self._admin.create_topics([new])[self.name].result(30)
            except KafkaException as error:
                # The one before it is still being deleted.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return None, f"topic {self.name} is being deleted"
            return True, f"topic {self.name}: {PARTITIONS} partitions, {settings_text()}"

        until(create, seconds=60)

    def fill(self, batches: Iterable[Batch]) -> Produced:
        """Produce everything in this order. Returns what the broker has confirmed."""
        produced = Produced()
        settings: Client = {
            **self._client,
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 300_000,
        }
        plain = Producer(settings)
        for number, batch in enumerate(batches):
            if batch.transaction == "none":
                self._send(plain, batch, None, produced)
                continue
            producer = Producer({**settings, "transactional.id": f"demo-{number}"})
            producer.init_transactions(30)
            producer.begin_transaction()
            committed = batch.transaction == "committed"
            self._send(producer, batch, (number, committed), produced)
            if committed:
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)
        return produced

    def _send(self, producer: Producer, batch: Batch, transaction: tuple[int, bool] | None, produced: Produced) -> None:
        before = len(produced.sent)

        def confirmed(event: Event, error: KafkaError | None, message: Message) -> None:
            partition, offset = message.partition(), message.offset()
            if error is None and partition is not None and offset is not None:
                produced.sent.append(Sent(event, partition, offset, transaction))

        for event in batch.events:
            producer.produce(
                self.name,
                event.value,
                event.key,
                timestamp=event.timestamp,
                headers=list(event.headers),
                on_delivery=partial(confirmed, event),
            )
        producer.flush(60)
        if missing := len(batch.events) - (len(produced.sent) - before):
            raise DemoError(f"Kafka did not confirm {missing:,} of {len(batch.events):,} records")

    def wait_for_compaction(self, produced: Produced) -> None:
        """Until Kafka has removed every record that has a successor with its key."""
        gone = {p: {o for o, fate in fates.items() if fate == "compacted"} for p, fates in produced.fates().items()}
        number = sum(map(len, gone.values()))

        def look() -> Look[bool]:
            left = sum(len(offsets & self._there(p, offsets)) for p, offsets in gone.items() if offsets)
            return (None if left else True), f"compaction: {number - left:,} of {number:,} superseded records are gone"

        until(look, seconds=90, every=2)

    def _there(self, partition: int, offsets: set[int]) -> set[int]:
        """Which of the offsets between the first and the last of these have a record."""
        first, last = min(offsets), max(offsets)
        consumer = Consumer({**self._client, "group.id": "demo-look", "enable.partition.eof": True})
        found: set[int] = set()
        try:
            consumer.assign([TopicPartition(self.name, partition, first)])
            while True:
                for message in consumer.consume(5_000, 10):
                    offset = message.offset()
                    if message.error() or offset is None or offset > last:
                        return found
                    found.add(offset)
        finally:
            consumer.close()

    def begin_at(self, timestamp: int) -> dict[int, int]:
        """Put the group where the records of this time begin, as `kafka-consumer-groups --reset-offsets` does."""
        consumer = Consumer({**self._client, "group.id": self.group, "enable.auto.commit": False})
        try:
            wanted = [TopicPartition(self.name, number, timestamp) for number in range(PARTITIONS)]
            offsets = consumer.offsets_for_times(wanted, 30)
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()
        return {p.partition: p.offset for p in offsets}

    def logs(self) -> dict[int, tuple[int, int]]:
        """The first offset of each partition and the one behind the last."""
        consumer = Consumer({**self._client, "group.id": "demo-look"})
        try:
            return {
                number: consumer.get_watermark_offsets(TopicPartition(self.name, number), 30)
                for number in range(PARTITIONS)
            }
        finally:
            consumer.close()

    def committed(self) -> dict[int, int]:
        """Where the group stands."""
        consumer = Consumer({**self._client, "group.id": self.group})
        try:
            found = consumer.committed([TopicPartition(self.name, number) for number in range(PARTITIONS)], 30)
        finally:
            consumer.close()
        return {p.partition: p.offset for p in found}


def settings_text() -> str:
    return ", ".join(f"{name}={value}" for name, value in SETTINGS.items())

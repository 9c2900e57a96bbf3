"""The demo's topic: made anew, filled, compacted; and where the archive's group stands in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from scripts.demo.orders import Batch
from scripts.demo.tell import Look, until
from scripts.stack.errors import StackError

Client: TypeAlias = dict[str, str | int | float | bool]
PARTITIONS = 4
# A broker that has just started answers so.
NOT_YET = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


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
                new = NewTopic(self.name, PARTITIONS, 1)
                self._admin.create_topics([new])[self.name].result(30)
            except KafkaException as error:
                # The one before it is still being deleted.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                return None, f"topic {self.name} is being deleted"
            return True, f"topic {self.name}: {PARTITIONS} partitions"

        until(create, seconds=60)

    def fill(self, batches: Iterable[Batch]) -> None:
        """Produce everything in this order. :raises StackError: the broker did not confirm all of it."""
        settings: Client = {
            **self._client,
            "linger.ms": 20,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 300_000,
        }
        plain = Producer(settings)
        for number, batch in enumerate(batches):
            if batch.transaction == "none":
                self._send(plain, batch)
                continue
            producer = Producer({**settings, "transactional.id": f"demo-{number}"})
            producer.init_transactions(30)
            producer.begin_transaction()
            self._send(producer, batch)
            if batch.transaction == "committed":
                producer.commit_transaction(30)
            else:
                producer.abort_transaction(30)

    def _send(self, producer: Producer, batch: Batch) -> None:
        confirmed = 0

        def confirm(error: KafkaError | None, _: Message) -> None:
            nonlocal confirmed
            confirmed += error is None

        for event in batch.events:
            producer.produce(
                self.name,
                event.value,
                event.key,
                timestamp=event.timestamp,
                headers=list(event.headers),
                on_delivery=confirm,
            )
        producer.flush(60)
        if missing := len(batch.events) - confirmed:
            raise StackError(f"Kafka did not confirm {missing:,} of {len(batch.events):,} records")

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

    def ends(self) -> dict[int, int]:
        """The offset behind the last of each partition."""
        consumer = Consumer({**self._client, "group.id": "demo-look"})
        try:
            return {n: consumer.get_watermark_offsets(TopicPartition(self.name, n), 30)[1] for n in range(PARTITIONS)}
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

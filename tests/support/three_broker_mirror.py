"""Three real brokers with the twin beside them. One of the brokers can be cut off from the controller."""

from collections.abc import Callable
from contextlib import suppress

import confluent_kafka
from confluent_kafka import ElectionType, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafka_archiver.values.ranges import TopicPartition
from tests.support.kafka_mirror import KafkaMirror
from tests.support.three_brokers import CUT_OFF, ThreeBrokers
from tests.support.waiting import until


class ThreeBrokerMirror(KafkaMirror):
    """The twin of three brokers. Producers and operators use the two that are never cut off.

    :ivar servers: the cluster.
    """

    can_cut_leaders = True
    replicas = (CUT_OFF, 2, 3)

    def __init__(self, servers: ThreeBrokers, clock: Callable[[], int]) -> None:
        self.servers = servers
        self._transactional: dict[str, Producer] = {}
        super().__init__(servers.others, clock)

    def _answers(self, names: list[TopicPartition]) -> bool:
        """Return True if the brokers that are connected know them, and their leader answers."""
        if not self.servers.is_cut:
            known = (
                AdminClient({"bootstrap.servers": self.servers.first, "log_level": 0}).list_topics(timeout=10).topics
            )
            if any(n.topic not in known or n.partition not in known[n.topic].partitions for n in names):
                return False
        return super()._answers(names)

    def elect(self, name: TopicPartition, cut: int = 0) -> None:
        """Let the broker lead again that may be cut off, unless it is."""
        if self.servers.is_cut:
            return
        place = confluent_kafka.TopicPartition(name.topic, name.partition)
        # Refused if it leads already.
        with suppress(KafkaException):
            self._admin.elect_leaders(ElectionType.PREFERRED, [place]).result(30)
        # Its own view counts: cut off before it hears of the election, it would never lead.
        until(lambda: {self._leader(name, brokers) for brokers in (self.brokers, self.servers.first)} == {CUT_OFF})

    def _leader(self, name: TopicPartition, brokers: str) -> int:
        topics = AdminClient({"bootstrap.servers": brokers, "log_level": 0}).list_topics(name.topic, timeout=10).topics
        return topics[name.topic].partitions[name.partition].leader

    def cut_leader_off(self, name: TopicPartition) -> None:
        """Cut the broker off that leads this partition, while it goes on to answer.

        Not while a transaction is open: its producer would ask that broker, too.
        """
        if not self._transactional:
            self.elect(name)
            self.servers.cut_off()
            self._meet_brokers()

    def heal(self) -> None:
        """Connect it again."""
        self.servers.heal()
        self._meet_brokers()

    def _meet_brokers(self) -> None:
        """Forget the brokers that earlier clients have met, of which one may be cut off now."""
        self.cluster = self._connect()
        self._admin = AdminClient({"bootstrap.servers": self.brokers})

    def compact(self, name: TopicPartition, before: int) -> None:
        """Do nothing: each replica compacts by itself, so an election may bring removed records back."""

    def _producer(self, transaction: str) -> Producer:
        """Return a producer of this transaction alone: an older one may know brokers that are cut off now."""
        if transaction not in self._transactional:
            self._transactional[transaction] = self._new_producer(transaction)
        return self._transactional[transaction]

    def end_transaction(self, transaction: str, commit: bool) -> None:
        super().end_transaction(transaction, commit)
        del self._transactional[transaction]

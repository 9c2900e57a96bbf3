"""A broker that does not know a topic is not believed if there are others: its metadata may be old."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka import cluster as module
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.leaders import BrokerNode, Leader
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.values.ranges import TopicPartition

pytestmark = pytest.mark.unit

NAME = TopicPartition("orders", 0)


def cluster(
    monkeypatch: pytest.MonkeyPatch,
    *answers: dict[TopicPartition, Any] | None,
    brokers: int = 3,
    code: int = KafkaError.UNKNOWN_TOPIC_OR_PART,
) -> Cluster:
    """A cluster whose brokers answer so, one after the other; None: the broker does not know the topic."""
    left = list(answers)

    def first_records(*_: Any) -> dict[TopicPartition, Any]:
        answer = left.pop(0)
        if answer is None:
            error = KafkaError(code)
            raise translate(error, "read a record of orders[0]", "brokers") from KafkaException(error)
        return answer

    monkeypatch.setattr(module, "first_records", first_records)
    # Else each address is asked who leads, and none of them answers for half a minute.
    monkeypatch.setattr(module, "leaders", lambda _properties, _nodes, names: dict.fromkeys(names, Leader(None)))
    monkeypatch.setattr(Cluster, "nodes", lambda _: [BrokerNode(number, "address") for number in range(brokers)])
    return Cluster({"bootstrap.servers": "nobody:9092"})


# The last two are those of a client, about a partition that was added while the broker was cut off.
@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION]
)
def test_the_next_broker_is_asked(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    asked = cluster(monkeypatch, None, None, {NAME: None}, code=code)
    assert asked.first_records({NAME: 0}) == {NAME: None}


def test_three_brokers_are_asked_before_the_next_attempt_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TransientError, match=r"it does not exist.*the next attempt asks again"):
        cluster(monkeypatch, None, None, None).first_records({NAME: 0})


def test_the_only_broker_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PermanentError, match="it does not exist"):
        cluster(monkeypatch, None, brokers=1).first_records({NAME: 0})

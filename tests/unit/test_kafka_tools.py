"""The commands of Kafka's tools in messages: for these brokers, and ready to be pasted into a shell."""

import shlex

import pytest

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.kafka_tools import KafkaTools

pytestmark = pytest.mark.unit

TWO = {"bootstrap.servers": "one:9092,two:9092"}


@pytest.mark.parametrize("protocol", [{}, {"security.protocol": "plaintext"}])
def test_a_command_names_the_brokers_of_the_connection(protocol: dict[str, str]) -> None:
    assert Cluster({**TWO, **protocol}).tools.alter_topic("orders", "retention.ms=1") == (
        "kafka-configs --bootstrap-server one:9092,two:9092 --entity-type topics --entity-name orders --alter "
        "--add-config retention.ms=1"
    )


def test_a_command_for_secured_brokers_needs_a_file_and_says_what_it_is() -> None:
    secured = KafkaTools.of({**TWO, "security.protocol": "sasl_ssl", "sasl.password": "hidden"})
    assert secured.list_topics() == (
        "kafka-topics --bootstrap-server one:9092,two:9092 --command-config client.properties --list"
        "  # client.properties: a file with the connection's security settings, as Kafka's Java tools name them"
    )
    # A shell reads the same words, whatever the name of the group, and no comment.
    words = shlex.split(secured.delete_group("its # 1"), comments=True)
    assert words[-5:] == ["--command-config", "client.properties", "--delete", "--group", "its # 1"]

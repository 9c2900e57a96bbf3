"""One Kafka connection for both clients: librdkafka's properties as the Java client's."""

import pytest

from kafka_archiver.errors import ConfigError
from kafka_archiver.kafka.java import java_properties, native_properties

BROKERS = {"bootstrap.servers": "b:9092"}


def test_plain_properties_stay_and_those_of_librdkafka_alone_go() -> None:
    given = {**BROKERS, "security.protocol": "SSL", "client.rack": "a", "queued.min.messages": "1"}
    assert java_properties(given) == {**BROKERS, "security.protocol": "SSL", "client.rack": "a"}


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-512", "scram.ScramLoginModule")]
)
def test_user_and_password_become_a_login_module_with_quotes_escaped(mechanism: str, module: str) -> None:
    given = {**BROKERS, "sasl.mechanisms": mechanism, "sasl.username": "u", "sasl.password": 'a"b\\c'}
    assert java_properties(given) == {
        **BROKERS,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="u" password="a\\"b\\\\c";',
    }


def test_pem_files_become_stores_of_type_pem() -> None:
    assert java_properties({**BROKERS, "ssl.ca.location": "/ca.pem"}) == {
        **BROKERS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }


def test_a_mechanism_without_translation_needs_its_own_login_module() -> None:
    given = {**BROKERS, "sasl.mechanism": "GSSAPI"}
    with pytest.raises(ConfigError, match=r"GSSAPI.*`sasl\.jaas\.config`.*PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        java_properties(given)
    assert java_properties({**given, "sasl.jaas.config": "x"})["sasl.jaas.config"] == "x"


def test_what_only_java_knows_is_kept_from_librdkafka() -> None:
    given = {**BROKERS, "sasl.jaas.config": "x", "ssl.truststore.location": "/t", "ssl.ca.location": "/ca"}
    assert native_properties(given) == {**BROKERS, "ssl.ca.location": "/ca"}

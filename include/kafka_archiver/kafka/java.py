"""One connection for both of Kafka's clients: librdkafka's properties, and Java's in their words. Pure."""

from collections.abc import Mapping

from kafka_archiver.errors import ConfigError

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SSL = {
    "ssl.key.password": "ssl.key.password",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
_SAME = ("bootstrap.servers", "security.protocol", "client.id", "client.rack", "client.dns.lookup")


# librdkafka refuses to start with these.
_JAVA_ONLY = ("sasl.jaas.config", "sasl.login.", "sasl.client.callback", "ssl.truststore.", "ssl.keystore.type")


def native_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Without what only the Java client knows."""
    return {name: value for name, value in properties.items() if not name.startswith(_JAVA_ONLY)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of the Java consumer that reach the same brokers in the same way.

    A Java property (`sasl.jaas.config`, `ssl.truststore.location`, …) given beside librdkafka's is kept as it is.

    :raises ConfigError: a SASL mechanism that has no translation.
    """
    java = {name: properties[name] for name in _SAME if name in properties}
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")
    if mechanism:
        java["sasl.mechanism"] = mechanism
        java["sasl.jaas.config"] = properties.get("sasl.jaas.config") or _jaas(mechanism, properties)
    if location := properties.get("ssl.ca.location"):
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}
    if authority := properties.get("ssl.ca.pem"):
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority}
    if certificate := properties.get("ssl.certificate.pem"):
        java |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": properties.get("ssl.key.pem", ""),
        }
    java |= {theirs: properties[ours] for ours, theirs in _SSL.items() if ours in properties}
    java |= {name: value for name, value in properties.items() if name.startswith(("ssl.truststore.", "sasl.login."))}
    return java


def _jaas(mechanism: str, properties: Mapping[str, str]) -> str:
    if mechanism not in _LOGIN:
        raise ConfigError(
            f"the Kafka connection asks for SASL mechanism {mechanism}, which Spark's reader gets only through "
            f"`sasl.jaas.config` in the same connection; without it, expected one of {', '.join(_LOGIN)}"
        )
    quoted = {
        name: properties.get(f"sasl.{name}", "").replace("\\", "\\\\").replace('"', '\\"')
        for name in ("username", "password")
    }
    return f'{_LOGIN[mechanism]} required username="{quoted["username"]}" password="{quoted["password"]}";'

"""One connection for both Kafka clients: translates librdkafka's properties to the Java client's. Pure."""

from collections.abc import Mapping

from kafka_archiver.kafka.jaas import login, trust
from kafka_archiver.messages.errors import ConfigError

_SSL = {
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
_SAME = ("bootstrap.servers", "security.protocol", "client.id", "client.rack", "client.dns.lookup")

# librdkafka refuses to start with these.
_JAVA_ONLY = ("sasl.jaas.config", "sasl.login.", "sasl.client.callback", "ssl.truststore.", "ssl.keystore.type")


def native_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without those that only the Java client knows."""
    return {name: value for name, value in properties.items() if not name.startswith(_JAVA_ONLY)}


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The Java consumer's properties for the same brokers, authentication and encryption.

    A Java property in the connection (`sasl.jaas.config`, `ssl.truststore.location`, …) is kept unchanged.

    :raises ConfigError: a property has no translation, or a related property is missing.
    """
    java = {name: properties[name] for name in _SAME if name in properties}
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")
    if mechanism:
        java |= {"sasl.mechanism": mechanism, **login(mechanism, properties)}
    if not any(name.startswith("ssl.truststore.") for name in properties):
        java |= trust(properties, "ssl.ca.")
    if certificate := properties.get("ssl.certificate.pem"):
        java |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": properties.get("ssl.key.pem", ""),
        }
    elif "ssl.certificate.location" in properties and "ssl.keystore.location" not in properties:
        raise ConfigError(
            "the Kafka connection has its client certificate in `ssl.certificate.location`, which Spark's reader "
            "cannot use; expected the text of certificate and key in `ssl.certificate.pem` and `ssl.key.pem`, or a "
            "PKCS #12 file in `ssl.keystore.location` with `ssl.keystore.password`"
        )
    java |= {java_name: properties[name] for name, java_name in _SSL.items() if name in properties}
    if algorithm := properties.get("ssl.endpoint.identification.algorithm"):
        java["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return java | {name: value for name, value in properties.items() if name.startswith(_JAVA_ONLY)}

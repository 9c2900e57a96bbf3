"""Properties for an archive's brokers and its schema registry, from connections or the mappings in their places."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kafka_archiver.config import Archive
from kafka_archiver.config.properties import property_text
from kafka_archiver.kafka.java_properties import java_properties
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection, mask_secrets

# Properties that the archiver sets itself, or that other clients use: consumers and producers may share a connection.
_NOT_OURS = re.compile(
    r"group\..*|((enable|allow)\.)?auto\..*|isolation\.level|enable\.partition\.eof|partition\.assignment\.strategy"
    r"|session\.timeout\.ms|heartbeat\.interval\.ms|max\.poll\.interval\.ms|consume\.callback\..*"
    r"|(request\.required\.)?acks|enable\.(idempotence|gapless\.guarantee)|transaction.*|linger\.ms|batch\..*"
    r"|(compression|queue\.buffering|sticky\.partitioning)\..*|(delivery|message|request)\.timeout\.ms|partitioner"
    r"|(error|throttle|stats|log)_cb|on_(commit|delivery)|dr_(msg_)?cb|default\.topic\.config|plugin\.library\.paths"
)


def kafka_endpoint(archive: Archive) -> dict[str, str]:
    """Return the brokers' part of `endpoints`. Raises ConfigError."""
    kafka = mask_secrets(_kafka(archive.source.kafka))
    if archive.source.reader == "spark":
        # Check it before anything is planned, not when Spark begins to read.
        java_properties(kafka)
    return kafka


def target_endpoint(archive: Archive, connection: str | None) -> dict[str, str]:
    """Return the properties of the brokers that a restore writes to: the archive's own without a connection.

    :param connection: the id of a Kafka connection.
    :raises ConfigError: as `endpoints`.
    """
    return kafka_endpoint(archive) if connection is None else mask_secrets(_kafka(connection, "to"))


def cluster_endpoint(connection: str) -> dict[str, str]:
    """Return the properties of the brokers of a Kafka connection. Raises ConfigError."""
    return mask_secrets(_kafka(connection))


def _kafka(source: str | Mapping[str, Any], key: str = "source.kafka") -> dict[str, str]:
    if not isinstance(source, str):
        return kafka_properties(source, "the mapping in source.kafka")
    reference = NamedConnection(source, key, ("kafka",))
    return kafka_properties(find_connection(reference).extra_dejson, f"the extra of {reference}")


def kafka_properties(settings: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return librdkafka's properties of a client, without those of a consumer, a producer or Airflow's hook alone.

    :param where: the name of `settings` in messages.
    :raises ConfigError: brokers are missing, or a property cannot be handed to the Spark job.
    """
    if "oauth_cb" in settings:
        raise ConfigError(
            f"{where} has `oauth_cb`, a Python function, which cannot be handed to the Spark job; expected "
            "`sasl.oauthbearer.method: oidc` with its client id, secret and token endpoint, or another mechanism"
        )
    properties = {name: property_text(value) for name, value in settings.items() if not _NOT_OURS.fullmatch(name)}
    brokers = properties.get("bootstrap.servers")
    if not brokers or "@" in brokers:
        fault = "a user or a password in" if brokers else "no"
        raise ConfigError(
            f"{where} has {fault} `bootstrap.servers`; expected the brokers, as in broker-1:9092,broker-2:9092"
        )
    return properties


def registry_endpoint(archive: Archive) -> dict[str, str] | None:
    """Return the properties of Confluent's registry clients; None for an archive without a registry.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    source = archive.source.registry
    if source is None:
        return None
    if isinstance(source, str):
        return _registry(source, "source.registry")
    return mask_secrets({name: property_text(value) for name, value in source.items()})


def target_registry(connection: str) -> dict[str, str]:
    """Return the properties of a registry to which a restore registers schemas.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    return _registry(connection, "registry")


def _registry(conn_id: str, key: str) -> dict[str, str]:
    reference = NamedConnection(conn_id, key, ("http",))
    connection = find_connection(reference)
    host = connection.host or ""
    address = urlsplit(host if "://" in host else f"{connection.schema or 'http'}://{host}")
    if not address.hostname:
        raise ConfigError(f"{reference} has no host; expected one like https://registry.example.com")
    # The connection's port goes behind the host, before a path.
    port = f":{connection.port}" if connection.port else ""
    properties = {"url": address._replace(netloc=f"{address.netloc}{port}").geturl()}
    if connection.login or connection.password:
        properties["basic.auth.user.info"] = f"{connection.login or ''}:{connection.password or ''}"
    extra = {name: property_text(value) for name, value in connection.extra_dejson.items()}
    return mask_secrets({**properties, **extra})

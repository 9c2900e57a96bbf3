"""Properties for an archive's schema registry, from an http connection or the mapping in its place."""

from urllib.parse import urlsplit

from airflow.sdk import Connection

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection, mask_secrets, text


def registry_endpoint(archive: Archive) -> dict[str, str] | None:
    """Return the properties of Confluent's registry clients; None for an archive without a registry.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    source = archive.source.registry
    if source is None:
        return None
    if not isinstance(source, str):
        properties = {name: text(value) for name, value in source.items()}
    else:
        reference = NamedConnection(source, "source.registry", ("http",))
        properties = _registry(find_connection(reference), str(reference))
    return mask_secrets(properties)


def target_registry(connection: str) -> dict[str, str]:
    """Return the properties of a registry to which a restore registers schemas.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    reference = NamedConnection(connection, "registry", ("http",))
    return mask_secrets(_registry(find_connection(reference), str(reference)))


def _registry(connection: Connection, where: str) -> dict[str, str]:
    host = connection.host or ""
    address = urlsplit(host if "://" in host else f"{connection.schema or 'http'}://{host}")
    if not address.hostname:
        raise ConfigError(f"{where} has no host; expected one like https://registry.example.com")
    # The connection's port goes behind the host, before a path.
    port = f":{connection.port}" if connection.port else ""
    properties = {"url": address._replace(netloc=f"{address.netloc}{port}").geturl()}
    if connection.login or connection.password:
        properties["basic.auth.user.info"] = f"{connection.login or ''}:{connection.password or ''}"
    return {**properties, **{name: text(value) for name, value in connection.extra_dejson.items()}}

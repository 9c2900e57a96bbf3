"""Properties for an archive's schema registry, from an http connection or the mapping in its place."""

from urllib.parse import urlsplit

from airflow.sdk import Connection

from kafka_archiver.config import Archive
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.connections.hidden import hidden, text
from kafka_archiver.orchestration.connections.lookup import Wanted, find


def registry_endpoint(archive: Archive) -> dict[str, str] | None:
    """The properties of Confluent's registry clients; None for an archive without a registry.

    :raises ConfigError: the connection is missing, of another type or incomplete.
    """
    source = archive.source.registry
    if source is None:
        return None
    if not isinstance(source, str):
        found = {name: text(value) for name, value in source.items()}
    else:
        wanted = Wanted(source, "source.registry", ("http",))
        found = _registry(find(wanted), str(wanted))
    return hidden(found)


def _registry(connection: Connection, where: str) -> dict[str, str]:
    host = connection.host or ""
    address = urlsplit(host if "://" in host else f"{connection.schema or 'http'}://{host}")
    if not address.hostname:
        raise ConfigError(f"{where} has no host; expected one like https://registry.example.com")
    # The connection's port goes behind the host, before a path.
    port = f":{connection.port}" if connection.port else ""
    found = {"url": address._replace(netloc=f"{address.netloc}{port}").geturl()}
    if connection.login or connection.password:
        found["basic.auth.user.info"] = f"{connection.login or ''}:{connection.password or ''}"
    return {**found, **{name: text(value) for name, value in connection.extra_dejson.items()}}

"""Open an archive with the connections that its YAML names."""

from typing import TYPE_CHECKING

from kafka_archiver.config import Archive
from kafka_archiver.config.properties import is_plain_address, property_text
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.stores import StoreType, store_of
from kafka_archiver.orchestration.connections.kafka import kafka_endpoint, registry_endpoint, target_endpoint
from kafka_archiver.orchestration.connections.keys import customer_key, master_keys, transform_keys
from kafka_archiver.orchestration.connections.lookup import NamedConnection, find_connection, mask_secrets

if TYPE_CHECKING:
    # Imported late, because they load Kafka's and S3's clients, and Airflow parses DAGs all day.
    from kafka_archiver.context.archive_context import Context
    from kafka_archiver.ledger.ledger import Ledger
    from kafka_archiver.store import Store
    from kafka_archiver.store.retry import Backoff


def endpoints(archive: Archive) -> Endpoints:
    """Look up addresses, credentials and keys of an archive. From then on logs mask their secrets.

    :raises ConfigError: a connection is missing, incomplete, of another type, or unusable for the archive's reader.
    """
    return Endpoints(
        kafka=kafka_endpoint(archive),
        store=store_endpoint(archive),
        keys=transform_keys(archive),
        master_keys=master_keys(archive),
    )


def target_endpoints(archive: Archive, connection: str | None) -> Endpoints:
    """Look up the addresses and credentials of a restore: the archive's store, and the brokers that are written.

    :param connection: the id of the target's Kafka connection; None: the archive's own.
    :raises ConfigError: as `endpoints`.
    """
    return Endpoints(
        kafka=target_endpoint(archive, connection), store=store_endpoint(archive), master_keys=master_keys(archive)
    )


def open_archive(archive: Archive) -> "Context":
    """Open the archive with its brokers, store and ledger; makes no request.

    :raises ConfigError: as `endpoints`.
    """
    from kafka_archiver.context.archive_context import Context

    # Not looked up now: only planning needs the registry.
    registry = None if archive.source.registry is None else lambda: registry_endpoint(archive) or {}
    return Context.open(archive, endpoints(archive), registry)


def open_store(archive: Archive, backoff: "Backoff | None" = None) -> "Store":
    """Open the archive's store, without Kafka. Parameters as of `store.open_store`. Raises ConfigError."""
    from kafka_archiver import store

    return store.open_store(archive.store.url, store_endpoint(archive), backoff)


def open_ledger(archive: Archive) -> "Ledger":
    """Open the archive's ledger, without Kafka. Raises ConfigError."""
    from kafka_archiver import store
    from kafka_archiver.context.keyring import keyring_of
    from kafka_archiver.ledger.ledger import Ledger

    clients = Endpoints(kafka={}, store=store_endpoint(archive), master_keys=master_keys(archive))
    return Ledger(store.open_store(archive.store.url, clients.store), archive.archive, keyring_of(clients))


def store_endpoint(archive: Archive) -> dict[str, str]:
    """Return the store's part of `endpoints`. Raises ConfigError."""
    kind = store_of(archive.store.url)
    key, source = archive.store.named_connection
    own = {**archive.store.requests, **customer_key(archive)}
    if not isinstance(source, str):
        where, options = f"the mapping in {key}", {name: property_text(value) for name, value in source.items()}
    else:
        reference = NamedConnection(source, key, kind.connections)
        where = str(reference)
        options = imported(kind.from_connection)(find_connection(reference), where)
    return mask_secrets(_checked(kind, {**options, **own}, where))


def _checked(kind: StoreType, options: dict[str, str], where: str) -> dict[str, str]:
    for name in ("endpoint_url", "sts_endpoint_url", "kms_endpoint_url"):
        if not is_plain_address(options.get(name) or "http://host"):
            # The message does not repeat the address: it may hold a secret.
            raise ConfigError(
                f"{where}: expected `{name}` like http://host:port, without user, password, query and fragment"
            )
    try:
        imported(kind.check)(options)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return options

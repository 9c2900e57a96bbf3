"""Open an archive with the connections that its YAML names."""

from typing import TYPE_CHECKING

from kafka_archiver.config import Archive
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.orchestration.connections.kafka import kafka_endpoint, target_endpoint
from kafka_archiver.orchestration.connections.keys import master_keys, transform_keys
from kafka_archiver.orchestration.connections.schema_registry import registry_endpoint
from kafka_archiver.orchestration.connections.store import store_endpoint

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

"""The checks of `airflow archive doctor`: connections, then everything behind them."""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from kafka_archiver.config import Archive
from kafka_archiver.config.alerts import Receiver
from kafka_archiver.config.archives import read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.alerts.send import check_receiver, name_of
from kafka_archiver.orchestration.connections import (
    NamedConnection,
    find_connection,
    kafka_endpoint,
    open_ledger,
    open_store,
    registry_endpoint,
)
from kafka_archiver.orchestration.connections.keys import transform_keys
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.submit.handover import handover_settings
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.state.doctor import Finding
from kafka_archiver.state.doctor import examine as examine_archive
from kafka_archiver.state.doctor.check import ok, problem, tried
from kafka_archiver.state.doctor.records import check_records
from kafka_archiver.state.doctor.schema_registry import REGISTRY, check_registry
from kafka_archiver.state.doctor.spark import check_submit
from kafka_archiver.state.doctor.store import NAME, check_encryption
from kafka_archiver.store.retry import Backoff

Client = TypeVar("Client")
# Somebody waits for the answer, and several checks may fail, one after the other.
IMPATIENT = Backoff(tries=4, total=4)


def checks_of(archive: Archive) -> Iterator[Finding]:
    """Yield every check of an archive."""
    yield from _connections(archive)
    cluster = yield from _try_client(
        "source.kafka",
        archive.source.kafka,
        lambda: Cluster(kafka_endpoint(archive)),
        lambda cluster: f"Kafka at {cluster.brokers}",
    )
    store = yield from _try_client(
        *archive.store.named_connection,
        lambda: open_store(archive, IMPATIENT),
        lambda store: store.url,
    )
    archives = read_archives(config_folder()).valid
    yield from examine_archive(archive, cluster, store, facts_of(archive, datetime.now(UTC)), archives.values())
    yield from tried(REGISTRY, lambda: check_registry(archive, cluster, _registry(archive)))
    if store and archive.store.encryption.client:
        yield from tried(NAME, lambda: check_encryption(open_ledger(archive)))
    if cluster and store:
        asked = (lambda: Registry.of(registry_endpoint(archive) or {})) if archive.source.registry else None
        context = Context(archive, cluster, store, Ledger(store, archive.archive), registry=asked)
        yield from tried("records", lambda: check_records(replace(context, keys=transform_keys(archive))))


def _try_client(
    key: str, named: object, make: Callable[[], Client], tell: Callable[[Client], str]
) -> Generator[Finding, None, Client | None]:
    """Make the client that a connection describes, without any request; None if the connection is missing or wrong.

    :param named: the connection's id, or the mapping in its place.
    """
    name = f"connection {named}" if isinstance(named, str) else key
    try:
        client = make()
    except ArchiverError as error:
        yield problem(name, str(error), "the checks that need this connection are skipped")
        return None
    yield ok(name, f"{key}: {tell(client)}")
    return client


def _registry(archive: Archive) -> Registry | None:
    properties = registry_endpoint(archive)
    return None if properties is None else Registry.of(properties)


def _connections(archive: Archive) -> Iterator[Finding]:
    """Check the connections for alerts and for Spark."""
    for key, receiver in archive.alerts.all:
        yield from _receiver(receiver, key)
    reference = NamedConnection(archive.spark.connection, "spark.connection", ("spark", "yarn", "k8s"))
    yield from _connection(reference)
    binary = "spark-submit"
    with suppress(ArchiverError):
        connection = find_connection(reference)
        binary = str(connection.extra_dejson.get("spark-binary") or binary)
        master, mode = f"{connection.conn_type}://{connection.host}", connection.extra_dejson.get("deploy-mode")
        yield from tried("secrets", lambda: _handed_over(archive, master, mode == "cluster"))
    yield from check_submit(binary)


def _handed_over(archive: Archive, master: str, cluster: bool) -> Iterator[Finding]:
    """Check that the job's endpoints can be handed over privately."""
    handover_settings(archive, master, cluster)
    yield ok("secrets", "the job gets its addresses and credentials privately")


def _receiver(receiver: Receiver, key: str) -> Iterator[Finding]:
    """Check the receiver of an alert, without sending one."""
    try:
        kind = check_receiver(receiver, key)
    except ArchiverError as error:
        yield problem(name_of(receiver), str(error))
    else:
        yield ok(name_of(receiver), f"alerts.{key}: {kind}")


def _connection(reference: NamedConnection) -> Iterator[Finding]:
    try:
        connection = find_connection(reference)
    except ArchiverError as error:
        yield problem(f"connection {reference.conn_id}", str(error))
    else:
        yield ok(f"connection {reference.conn_id}", f"{reference.key}: {connection.conn_type}")

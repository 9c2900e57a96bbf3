"""The checks of `airflow archive doctor`: connections, then everything behind them."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from kafka_archiver.config import Archive
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
    kafka, make_cluster = archive.source.kafka, lambda: Cluster(kafka_endpoint(archive))
    cluster = yield from _try_client("source.kafka", kafka, make_cluster, lambda known: f"Kafka at {known.brokers}")
    key, named = archive.store.named_connection
    store = yield from _try_client(key, named, lambda: open_store(archive, IMPATIENT), lambda known: known.url)
    archives = read_archives(config_folder()).valid
    yield from examine_archive(archive, cluster, store, facts_of(archive, datetime.now(UTC)), archives.values())
    yield from tried(REGISTRY, lambda: check_registry(archive, cluster, _registry(archive)))
    if store and archive.store.encryption.client:
        yield from tried(NAME, lambda: check_encryption(open_ledger(archive)))
    if cluster and store:
        asked = (lambda: Registry.of(registry_endpoint(archive) or {})) if archive.source.registry else None
        context = Context(archive, cluster, store, Ledger(store, archive.archive), registry=asked)
        yield from tried("records", lambda: check_records(replace(context, keys=transform_keys(archive))))


def _try_connection(
    name: str, ask: Callable[[], Client], say: Callable[[Client], str], means: str = ""
) -> Generator[Finding, None, Client | None]:
    """Ask for what a connection describes, without a request to its service; None if that is missing or wrong."""
    try:
        client = ask()
    except ArchiverError as error:
        yield problem(name, str(error), means)
        return None
    yield ok(name, say(client))
    return client


def _try_client(
    key: str, named: object, make: Callable[[], Client], say: Callable[[Client], str]
) -> Generator[Finding, None, Client | None]:
    """Make the client of a connection. `named`: the connection's id, or the mapping in its place."""
    name = f"connection {named}" if isinstance(named, str) else key
    skipped = "the checks that need this connection are skipped"
    return (yield from _try_connection(name, make, lambda client: f"{key}: {say(client)}", skipped))


def _registry(archive: Archive) -> Registry | None:
    properties = registry_endpoint(archive)
    return None if properties is None else Registry.of(properties)


def _connections(archive: Archive) -> Iterator[Finding]:
    """Check the connections for alerts and for Spark."""
    for key, receiver in archive.alerts.all:
        about = f"alerts.{key}: "
        yield from _try_connection(name_of(receiver), partial(check_receiver, receiver, key), about.__add__)
    reference = NamedConnection(archive.spark.connection, "spark.connection", ("spark", "yarn", "k8s"))
    connection = yield from _try_connection(
        f"connection {reference.conn_id}",
        partial(find_connection, reference),
        lambda known: f"{reference.key}: {known.conn_type}",
    )
    binary = "spark-submit"
    if connection:
        binary = str(connection.extra_dejson.get("spark-binary") or binary)
        master, mode = f"{connection.conn_type}://{connection.host}", connection.extra_dejson.get("deploy-mode")
        yield from tried("secrets", lambda: _handed_over(archive, master, mode == "cluster"))
    yield from check_submit(binary)


def _handed_over(archive: Archive, master: str, cluster: bool) -> Iterator[Finding]:
    """Check that the job's endpoints can be handed over privately."""
    handover_settings(archive, master, cluster)
    yield ok("secrets", "the job gets its addresses and credentials privately")

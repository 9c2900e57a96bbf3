"""`airflow archive doctor`: find what would stop or harm a run, before the run starts."""

from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from kafka_archiver.config import Archive
from kafka_archiver.config.alerts import Receiver
from kafka_archiver.config.archives import config_folder, read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.orchestration.alerts.send import check_receiver, name_of
from kafka_archiver.orchestration.cli.find import ask_each
from kafka_archiver.orchestration.connections import (
    Wanted,
    find,
    kafka_endpoint,
    open_ledger,
    open_store,
    registry_endpoint,
)
from kafka_archiver.orchestration.connections.keys import transform_keys
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.submit.handover import handed_over
from kafka_archiver.orchestration.terminal.output import Answer, Cell, Red, Table, answering
from kafka_archiver.records.decode.registry import Registry
from kafka_archiver.state.doctor import Finding
from kafka_archiver.state.doctor import examine as examine_archive
from kafka_archiver.state.doctor.check import ok, problem, tried
from kafka_archiver.state.doctor.encryption import NAME, check_encryption
from kafka_archiver.state.doctor.records import check_records
from kafka_archiver.state.doctor.registry import REGISTRY, check_registry
from kafka_archiver.state.doctor.spark import check_submit
from kafka_archiver.store.retry import Backoff

Opened = TypeVar("Opened")
# Somebody waits for the answer, and several checks may fail, one after the other.
IMPATIENT = Backoff(tries=4, total=4)


@answering
def examine(args: Namespace) -> Answer:
    """The checks of these archives, or of all."""
    found, failures = ask_each(args.archives, lambda archive: (archive.archive, list(_checks(archive))))
    document = [{"archive": name, "checks": [_document(check) for check in checks]} for name, checks in found]
    for name, checks in found:
        if count := sum(check.severity == "problem" for check in checks):
            failures.append(f"{name}: {count} {'problem' if count == 1 else 'problems'}")
    return Answer(document, [_table(name, checks) for name, checks in found], failures)


def _checks(archive: Archive) -> Iterator[Finding]:
    yield from _connections(archive)
    cluster = yield from _opened(
        "source.kafka",
        archive.source.kafka,
        lambda: Cluster(kafka_endpoint(archive)),
        lambda cluster: f"Kafka at {cluster.brokers}",
    )
    store = yield from _opened(
        "store.aws",
        archive.store.aws,
        lambda: open_store(archive, IMPATIENT),
        lambda store: store.url,
    )
    others = read_archives(config_folder()).valid
    yield from examine_archive(archive, cluster, store, facts_of(archive, datetime.now(UTC)), others.values())
    yield from tried(REGISTRY, lambda: check_registry(archive, cluster, _registry(archive)))
    if store and archive.store.encryption.client:
        yield from tried(NAME, lambda: check_encryption(open_ledger(archive)))
    if cluster and store:
        asked = (lambda: Registry.of(registry_endpoint(archive) or {})) if archive.source.registry else None
        context = Context(archive, cluster, store, Ledger(store, archive.archive), registry=asked)
        yield from tried("records", lambda: check_records(replace(context, keys=transform_keys(archive))))


def _opened(
    key: str, named: object, make: Callable[[], Opened], tell: Callable[[Opened], str]
) -> Generator[Finding, None, Opened | None]:
    """Make the client that a connection describes, without any request; None if the connection is missing or wrong.

    :param named: the connection's id, or the mapping in its place.
    """
    name = f"connection {named}" if isinstance(named, str) else key
    try:
        opened = make()
    except ArchiverError as error:
        yield problem(name, str(error), "the checks that need this connection are skipped")
        return None
    yield ok(name, f"{key}: {tell(opened)}")
    return opened


def _registry(archive: Archive) -> Registry | None:
    properties = registry_endpoint(archive)
    return None if properties is None else Registry.of(properties)


def _connections(archive: Archive) -> Iterator[Finding]:
    """The connections for alerts and for Spark."""
    for key, receiver in archive.alerts.all:
        yield from _receiver(receiver, key)
    spark = Wanted(archive.spark.connection, "spark.connection", ("spark", "yarn", "k8s"))
    yield from _connection(spark)
    binary = "spark-submit"
    with suppress(ArchiverError):
        found = find(spark)
        binary = str(found.extra_dejson.get("spark-binary") or binary)
        master, mode = f"{found.conn_type}://{found.host}", found.extra_dejson.get("deploy-mode")
        yield from tried("secrets", lambda: _handed_over(archive, master, mode == "cluster"))
    yield from check_submit(binary)


def _handed_over(archive: Archive, master: str, cluster: bool) -> Iterator[Finding]:
    """Whether the job's endpoints can be handed over privately."""
    handed_over(archive, master, cluster)
    yield ok("secrets", "the job gets its addresses and credentials privately")


def _receiver(receiver: Receiver, key: str) -> Iterator[Finding]:
    """The receiver of an alert, without sending one."""
    try:
        kind = check_receiver(receiver, key)
    except ArchiverError as error:
        yield problem(name_of(receiver), str(error))
    else:
        yield ok(name_of(receiver), f"alerts.{key}: {kind}")


def _connection(wanted: Wanted) -> Iterator[Finding]:
    try:
        found = find(wanted)
    except ArchiverError as error:
        yield problem(f"connection {wanted.conn_id}", str(error))
    else:
        yield ok(f"connection {wanted.conn_id}", f"{wanted.key}: {found.conn_type}")


def _table(name: str, checks: list[Finding]) -> Table:
    rows: list[list[Cell]] = [
        [
            check.kind,
            Red(check.severity) if check.severity == "problem" else check.severity,
            check.observed if check.severity == "ok" else "see below",
        ]
        for check in checks
    ]
    below = [line for check in checks if check.severity != "ok" for line in _in_full(check)]
    return Table(("check", "state", "found"), rows, name, below=below)


def _document(check: Finding) -> dict[str, Any]:
    """Return a check for programs."""
    return {
        "name": check.kind,
        "state": check.severity,
        "found": check.observed,
        "means": check.means,
        "choices": check.steps,
    }


def _in_full(check: Finding) -> Iterator[str]:
    yield ""
    yield f"{check.severity}: {check.kind}"
    yield f"  {check.observed}"
    if check.means:
        yield f"  This means: {check.means}."
    yield from (f"  - {choice}" for choice in check.steps)

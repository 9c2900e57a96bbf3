"""`airflow archive doctor`: every strange state, before a run meets it."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime

from kafka_archiver.config import Archive
from kafka_archiver.decode.registry import Registry
from kafka_archiver.errors import ArchiverError
from kafka_archiver.orchestration.archives import config_folder, read_archives
from kafka_archiver.orchestration.cli.find import ask_each, open_archive
from kafka_archiver.orchestration.cli.output import Answer, Cell, Red, Table, answering
from kafka_archiver.orchestration.connections import registry_endpoint
from kafka_archiver.orchestration.lookup import Wanted, find
from kafka_archiver.orchestration.schedule import last_interval
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.doctor import Check
from kafka_archiver.steps.doctor import examine as examine_archive
from kafka_archiver.steps.doctor.check import ok, problem, tried
from kafka_archiver.steps.doctor.registry import REGISTRY, check_registry
from kafka_archiver.steps.doctor.spark import check_submit


@answering
def examine(args: Namespace) -> Answer:
    """The checks of one archive, or of all."""
    found, failures = ask_each(args.archive, lambda archive: (archive.archive, list(_checks(archive))))
    document = [{"archive": name, "checks": [check.model_dump() for check in checks]} for name, checks in found]
    for name, checks in found:
        if count := sum(check.state == "problem" for check in checks):
            failures.append(f"{name}: {count} {'problem' if count == 1 else 'problems'}")
    return Answer(document, [_table(name, checks) for name, checks in found], failures)


def _checks(archive: Archive) -> Iterator[Check]:
    now = datetime.now(UTC)
    yield from _connections(archive)
    try:
        context: Context = open_archive(archive)
    except ArchiverError as error:
        yield problem("connections", str(error), "neither the brokers nor the store can be tried")
        return
    yield ok("connections", f"Kafka at {context.cluster.brokers}, {context.store.url}")
    others, _ = read_archives(config_folder())
    yield from examine_archive(context, last_interval(archive, now), now, others.values())
    yield from tried(REGISTRY, lambda: check_registry(context, _registry(archive)))


def _registry(archive: Archive) -> Registry | None:
    properties = registry_endpoint(archive)
    return None if properties is None else Registry.of(properties)


def _connections(archive: Archive) -> Iterator[Check]:
    """Those that the brokers and the store do not need."""
    for conn_id in archive.alerts.on_failure:
        yield from _connection(Wanted(conn_id, "alerts.on_failure", ("http", "smtp")))
    spark = Wanted(archive.spark.connection, "spark.connection", ("spark", "yarn", "k8s"))
    yield from _connection(spark)
    try:
        binary = find(spark).extra_dejson.get("spark-binary")
    except ArchiverError:
        binary = None
    yield from check_submit(str(binary or "spark-submit"))


def _connection(wanted: Wanted) -> Iterator[Check]:
    try:
        found = find(wanted)
    except ArchiverError as error:
        yield problem(f"connection {wanted.conn_id}", str(error))
    else:
        yield ok(f"connection {wanted.conn_id}", f"{wanted.key}: {found.conn_type}")


def _table(name: str, checks: list[Check]) -> Table:
    rows: list[list[Cell]] = [
        [
            check.name,
            Red(check.state) if check.state == "problem" else check.state,
            check.found if check.state == "ok" else "see below",
        ]
        for check in checks
    ]
    below = [line for check in checks if check.state != "ok" for line in _in_full(check)]
    return Table(("check", "state", "found"), rows, name, below=below)


def _in_full(check: Check) -> Iterator[str]:
    yield ""
    yield f"{check.state}: {check.name}"
    yield f"  {check.found}"
    if check.means:
        yield f"  This means: {check.means}."
    yield from (f"  - {choice}" for choice in check.choices)

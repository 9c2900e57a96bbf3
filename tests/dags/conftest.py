"""Archives in a folder of the test's own, connections from the environment, and what Airflow makes of both."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.intervals import to_ms
from kafka_archiver.orchestration.archives import read_archives
from kafka_archiver.orchestration.connections import endpoints
from kafka_archiver.orchestration.dags import archive_dag
from kafka_archiver.ranges import Range
from kafka_archiver.steps.context import Context
from scripts.stack.paths import ROOT
from tests.support.brokers import Brokers
from tests.support.runs import DAY, P0, P1

DAGS = ROOT / "dags"
MINIMAL = "archive: {name}\nsource: {{topics: [{name}]}}\nstore: {{url: 's3://bucket/lake'}}\n"
SECRET = "hunter2-hunter2"

AddConnection = Callable[..., None]
MakeArchive = Callable[..., Archive]
Call = Callable[..., int]


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of archives, the one that the DAG files read."""
    folder = tmp_path / "archives"
    folder.mkdir()
    monkeypatch.setenv("ARCHIVER_CONFIG_DIR", str(folder))
    return folder


@pytest.fixture
def archive() -> MakeArchive:
    """Makes an archive called orders; more YAML as text."""

    def make(more: str = "", name: str = "orders") -> Archive:
        return parse_archive(MINIMAL.format(name=name) + more, f"{name}.yaml")

    return make


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[AddConnection]:
    """Adds an Airflow connection."""
    # Set before the code under test would, so that it is unset afterwards.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")

    def add(conn_id: str, conn_type: str, extra: dict[str, Any] | None = None, **fields: Any) -> None:
        value = json.dumps({"conn_type": conn_type, **fields, "extra": extra or {}})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)

    return add


@pytest.fixture
def local_connections(connection: AddConnection) -> None:
    """The three connections that archives name when they name none, with secrets in two of them."""
    sasl = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": SECRET}
    connection("kafka_default", "kafka", {"bootstrap.servers": "broker:9092", **sasl})
    connection("aws_default", "aws", {"region_name": "eu-central-1"}, login="AKIDEXAMPLE", password=SECRET)
    connection("spark_default", "spark", {"deploy-mode": "client"}, host="local[2]")


def load() -> DagBag:
    """What Airflow finds in dags/."""
    return DagBag(dag_folder=DAGS, bundle_path=DAGS, bundle_name="test")


def dag_of(archive: Archive) -> DAG:
    return archive_dag(archive, "The text.", ROOT / "spark_jobs" / "archive.py")


@pytest.fixture
def call() -> Call:
    """Calls `airflow archive` as Airflow's parser does. Returns the exit code."""
    from airflow.cli.cli_parser import get_parser

    def run(*words: str) -> int:
        args = get_parser().parse_args(["archive", *words])
        try:
            args.func(args)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 99
        return 0

    return run


@pytest.fixture
def orders(archives: Path, tmp_path: Path) -> Path:
    """The archive orders, in a store of its own in memory."""
    file = archives / "orders.yaml"
    file.write_text(
        "archive: orders\nsource: {topics: [orders]}\n"
        f"store: {{url: 'memory://{tmp_path.name}/lake', chunk_records: 2}}\n"
    )
    return file


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch, local_connections: None) -> Brokers:
    """One record an hour in each of two partitions; three hours so far."""
    answers = Brokers({P0: Range(0, 3), P1: Range(0, 3)}, first=to_ms(DAY) // 3_600_000)
    monkeypatch.setattr("kafka_archiver.steps.context.Cluster", answers)
    return answers


@pytest.fixture
def context(orders: Path, brokers: Brokers) -> Context:
    found, _ = read_archives(orders.parent)
    return Context.open(found["orders"], endpoints(found["orders"]))

"""Archives in a folder of the test's own, connections from the environment, and what Airflow makes of both."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from kafka_archiver.config import Archive, parse_archive
from kafka_archiver.orchestration.dags import archive_dag
from scripts.stack.paths import ROOT

DAGS = ROOT / "dags"
MINIMAL = "archive: {name}\nsource: {{topics: [{name}]}}\nstore: {{url: 's3://bucket/lake'}}\n"
SECRET = "hunter2-hunter2"

AddConnection = Callable[..., None]
MakeArchive = Callable[..., Archive]


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

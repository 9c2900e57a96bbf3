"""One Airflow a session, with the connections of the session's broker and S3 server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.stack.airflow import Airflow as Server
from scripts.stack.airflow import AirflowPorts
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from scripts.stack.ports import free_ports
from scripts.stack.s3 import S3
from scripts.stack.stack import connections
from tests.support.airflow import Airflow
from tests.support.receivers import Otlp
from tests.support.spark_cluster import SparkCluster

# The files of DAGs are parsed when a test asks for it; every ten seconds would take a sixth of a core.
SELDOM = {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60"}
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"


@pytest.fixture(scope="session")
def otlp() -> Iterator[Otlp]:
    """Gets the archiver's counters of Airflow's OpenTelemetry."""
    with Otlp() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def airflow(stack_directory: Path, kafka: Kafka, s3: S3, otlp: Otlp) -> Iterator[Airflow]:
    """A real Airflow: scheduler, DAG processor, triggerer, API server. It has one archive: tests add their own."""
    archives = stack_directory / "archives"
    archives.mkdir()
    (other_dags := stack_directory / "dags-of-others").mkdir()
    bundles = [
        {"name": name, "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(path)}}
        for name, path in (("dags-folder", ROOT / "dags"), ("others", other_dags))
    ]
    more = {
        **SELDOM,
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
        "AIRFLOW__METRICS__OTEL_ON": "True",
        "AIRFLOW__METRICS__METRICS_ALLOW_LIST": "kafka_archiver",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://127.0.0.1:{otlp.port}/v1/metrics",
    }
    server = Server(stack_directory / "airflow", free_ports(AirflowPorts), archives, connections(kafka, s3), more)
    # From its DAGs we know how Airflow calls the files that have them.
    first = "schedule: null\nsource: {topics: [t]}\nstore: {url: 's3://archive/first'}\n"
    (archives / "first.yaml").write_text(f"archive: first\n{first}")
    try:
        server.start()
        airflow = Airflow(server.url, archives, server.settings(), other_dags)
        for kind in ("archive", "audit"):
            airflow.parsed(f"{kind}_first")
        airflow.parsed("archiver_watchdog")
        yield airflow
    finally:
        server.stop(grace=0)


@pytest.fixture(scope="session")
def spark_cluster(stack_directory: Path, sockets: str) -> Iterator[SparkCluster]:
    """A Spark standalone cluster of one master and two workers in different time zones."""
    with SparkCluster(stack_directory / "spark", sockets).running() as running:
        yield running


@pytest.fixture
def cluster(spark_cluster: SparkCluster) -> SparkCluster:
    """It, with both workers alive, whatever an earlier test has done to them."""
    spark_cluster.heal()
    return spark_cluster

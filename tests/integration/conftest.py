"""One Airflow a session, with the connections of the session's broker and S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.stack.airflow import Airflow as Server
from scripts.stack.airflow import AirflowPorts, Connection
from scripts.stack.kafka import Kafka
from scripts.stack.ports import free_ports
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.spark_cluster import SparkCluster


@pytest.fixture(scope="session")
def airflow(stack_directory: Path, kafka: Kafka, s3: S3) -> Iterator[Airflow]:
    """A real Airflow: scheduler, DAG processor, triggerer, API server. It has no archives: tests add their own."""
    connections = [
        Connection("kafka_default", "kafka", {"bootstrap.servers": kafka.bootstrap_servers}),
        Connection(
            "aws_default",
            "aws",
            {"endpoint_url": s3.endpoint_url, "region_name": s3.region},
            login=s3.owner.access_key,
            password=s3.owner.secret_key,
        ),
        Connection("spark_default", "spark", {"deploy-mode": "client"}, host="local[2]"),
    ]
    archives = stack_directory / "archives"
    archives.mkdir()
    server = Server(stack_directory / "airflow", free_ports(AirflowPorts), archives, connections)
    try:
        server.start()
        yield Airflow(server.url, archives, server.settings())
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

"""Real services for the tests: one broker and one S3 server a session, started by the first test that asks.

They run on free ports below .local/test/<pid of pytest>-…; see scripts/stack for what they can do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.paths import LOCAL
from scripts.stack.ports import free_ports
from scripts.stack.registry import RegistryPorts
from scripts.stack.s3 import S3, S3Ports
from tests.support import quick
from tests.support.azurite import Azurite, AzuritePorts, require_azurite
from tests.support.proxy import S3Proxy
from tests.support.registry import RegistryServer
from tests.support.s3_with_kms import S3WithKms
from tests.support.sessions import directory_of_this, discard, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.archiver import Services

# Each test draws the same examples in every run, by a seed of its name. `make attack` searches with new seeds. A busy
# machine is no fault of the code. Where CI is set, Hypothesis derandomizes whatever does not say otherwise.
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=50)
settings.register_profile(
    "attack",
    derandomize=False,
    deadline=None,
    # Each file again and again, with new seeds: a file has to end within minutes, also on a busy machine.
    max_examples=100,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("suite")

Server = TypeVar("Server", Kafka, S3, Azurite, RegistryServer)

SESSION = directory_of_this(LOCAL / "test")
# A shell that has sourced a stack's env.sh would lead the tests to that stack.
for name in list(os.environ):
    # AIRFLOW_CONSTRAINTS: for tests/integration/test_wheel.py.
    settings = ("AIRFLOW_", "AWS_", "PYSPARK_", "SPARK_", "ARCHIVER_CONFIG_DIR")
    if name.startswith(settings) and name != "AIRFLOW_CONSTRAINTS":
        del os.environ[name]
# Set before the first test imports Airflow, which would make itself a home in the person's own.
os.environ["AIRFLOW_HOME"] = str(SESSION / "airflow-home")
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"


@pytest.fixture(scope="session", autouse=True)
def stack_directory() -> Iterator[Path]:
    """Where this session's services keep their data; gone at the end."""
    sweep(SESSION.parent)
    SESSION.mkdir(exist_ok=True)
    yield SESSION
    discard(SESSION)


@pytest.fixture(scope="session")
def sockets() -> Iterator[str]:
    """Where Spark makes its sockets: their paths would be too long below this session's directory."""
    with tempfile.TemporaryDirectory(prefix="spark-", dir="/tmp") as directory:
        yield directory


def _running(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
    finally:
        server.stop(grace=0)


@pytest.fixture(scope="session")
def kafka(stack_directory: Path) -> Iterator[Kafka]:
    """A real broker. Topics outlive a test: give each test names of its own."""
    yield from _running(Kafka(stack_directory / "kafka", free_ports(KafkaPorts), java=quick.JAVA))


@pytest.fixture(scope="session")
def s3(stack_directory: Path) -> Iterator[S3]:
    """A real S3 server with the bucket `archive`. Objects outlive a test: give each test a prefix of its own."""
    yield from _running(S3WithKms(stack_directory / "s3", free_ports(S3Ports)))


@pytest.fixture(scope="session")
def azurite(stack_directory: Path) -> Iterator[Azurite]:
    """The emulator of Azure Blob Storage, with the container `archive`. Give each test a prefix of its own."""
    require_azurite()
    yield from _running(Azurite(stack_directory / "azurite", free_ports(AzuritePorts)))


@pytest.fixture(scope="session")
def registry(stack_directory: Path) -> Iterator[RegistryServer]:
    """A real schema registry; half a minute to start, and more the first time. Mark its tests `slow`."""
    yield from _running(RegistryServer(stack_directory / "registry", free_ports(RegistryPorts)))


@pytest.fixture
def proxy(s3: S3) -> Iterator[S3Proxy]:
    """A proxy before the S3 server, whose requests a test can fail, hold or damage."""
    with S3Proxy(s3.endpoint_url).serving() as serving:
        yield serving


@pytest.fixture
def services(kafka: Kafka, s3: S3, tmp_path: Path) -> Services:
    """Both, and a directory of the test's own."""
    from tests.support.archiver import Services

    return Services(kafka, s3, tmp_path)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, sockets: str) -> Iterator[SparkSession]:
    """A real Spark, local, with the Kafka source: one for all tests that need no process of their own."""
    from tests.support.spark_session import local_spark

    with local_spark(tmp_path_factory.mktemp("spark"), sockets) as session:
        yield session

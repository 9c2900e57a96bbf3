"""One Spark session for all tests of the job that need no process of their own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_archiver.spark.engine import SESSION
from scripts.stack.paths import SPARK_JARS


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, sockets: str) -> Iterator[SparkSession]:
    """A real Spark, local, with the Kafka source."""
    place: Path = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {
        **SESSION,
        "spark.jars": ",".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(place),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={place}",
        "spark.python.unix.domain.socket.dir": sockets,
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()

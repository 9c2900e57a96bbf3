"""A Spark of one process, with the Kafka source."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from kafka_archiver.spark.engine import SESSION
from scripts.stack.paths import SPARK_JARS
from tests.support.archiver import quick_driver


@contextmanager
def local_spark(directory: Path, sockets: str) -> Iterator[SparkSession]:
    """Start Spark, and stop it in the end. :param sockets: a directory with a short path."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {
        **SESSION,
        "spark.jars": ",".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        **quick_driver(directory),
        "spark.python.unix.domain.socket.dir": sockets,
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()

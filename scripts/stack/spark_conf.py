"""Writes the spark-defaults.conf of the stack."""

from __future__ import annotations

from pathlib import Path

from kafka_archiver.spark.class_data import driver_class_path, java_options
from scripts.stack.class_data import class_data
from scripts.stack.java import find_java
from scripts.stack.paths import LOCAL, SPARK_HOME, SPARK_JARS, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.settings import SPARK_CONF


def write_spark_conf() -> None:
    for directory in (SPARK_CONF, TEMPORARY):
        directory.mkdir(parents=True, exist_ok=True)
    (SPARK_CONF / "spark-defaults.conf").write_text(
        spark_defaults(sorted(SPARK_JARS.glob("*.jar")), class_data(find_java()))
    )


def spark_defaults(jars: list[Path], archive: Path | None = None) -> str:
    """:param archive: a class-data archive for the driver's JVM."""
    # Spark puts these before a job's extraJavaOptions.
    # With the small heap of this job, the serial collector takes 250 MiB and 10 % of the CPU less than G1.
    options = "-XX:-UsePerfData -XX:+UseSerialGC"
    settings = {
        "spark.jars": ",".join(jar.as_uri() for jar in jars),
        "spark.ui.enabled": "false",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.eventLog.enabled": "false",
        "spark.sql.warehouse.dir": str(LOCAL / "spark-warehouse"),
        **driver_settings(options, archive),
        "spark.executor.defaultJavaOptions": options,
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())


def driver_settings(options: str, archive: Path | None) -> dict[str, str]:
    """Settings of the driver's JVM: its options, and its class-data archive if there is one."""
    name = "spark.driver.defaultJavaOptions"
    if archive is None:
        return {name: options}
    return {name: f"{options} {java_options(archive)}", "spark.driver.extraClassPath": driver_class_path(SPARK_HOME)}

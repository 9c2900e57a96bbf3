"""Writes the spark-defaults.conf of the stack."""

from __future__ import annotations

from pathlib import Path

from scripts.stack.paths import LOCAL, SPARK_JARS, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.settings import SPARK_CONF


def write_spark_conf() -> None:
    for directory in (SPARK_CONF, TEMPORARY):
        directory.mkdir(parents=True, exist_ok=True)
    (SPARK_CONF / "spark-defaults.conf").write_text(spark_defaults(sorted(SPARK_JARS.glob("*.jar"))))


def spark_defaults(jars: list[Path]) -> str:
    # Prepended by Spark to whatever a job gives as extraJavaOptions.
    # The serial collector takes 250 MiB and a tenth of the CPU less than G1 with the small heap of this job.
    java_options = "-XX:-UsePerfData -XX:+UseSerialGC"
    settings = {
        "spark.jars": ",".join(jar.as_uri() for jar in jars),
        "spark.ui.enabled": "false",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.eventLog.enabled": "false",
        "spark.sql.warehouse.dir": str(LOCAL / "spark-warehouse"),
        "spark.driver.defaultJavaOptions": java_options,
        "spark.executor.defaultJavaOptions": java_options,
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())

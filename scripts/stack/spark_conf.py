"""Writes the spark-defaults.conf of the stack."""

from __future__ import annotations

from pathlib import Path

from scripts.stack.paths import LOCAL, SPARK_JARS, TEMPORARY
from scripts.stack.ports import HOST
from scripts.stack.settings import SPARK_CONF

# A socket's whole path may have 107 bytes; Spark adds up to 42 to the directory.
LONGEST_SOCKET_DIRECTORY = 65


def write_spark_conf() -> None:
    for directory in (SPARK_CONF, TEMPORARY):
        directory.mkdir(parents=True, exist_ok=True)
    (SPARK_CONF / "spark-defaults.conf").write_text(spark_defaults(sorted(SPARK_JARS.glob("*.jar")), TEMPORARY))


def spark_defaults(jars: list[Path], temporary: Path) -> str:
    # Prepended by Spark to whatever a job gives as extraJavaOptions; without them, files appear below /tmp.
    # The serial collector takes 250 MiB and a tenth of the CPU less than G1 with the small heap of this job.
    java_options = f'-XX:-UsePerfData -XX:+UseSerialGC "-Djava.io.tmpdir={temporary}"'
    settings = {
        "spark.jars": ",".join(jar.as_uri() for jar in jars),
        "spark.ui.enabled": "false",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.eventLog.enabled": "false",
        "spark.local.dir": str(temporary),
        "spark.sql.warehouse.dir": str(LOCAL / "spark-warehouse"),
        "spark.driver.defaultJavaOptions": java_options,
        "spark.executor.defaultJavaOptions": java_options,
    }
    if len(str(temporary).encode()) > LONGEST_SOCKET_DIRECTORY:
        settings["spark.python.unix.domain.socket.dir"] = "/tmp"
    return "".join(f"{key} {value}\n" for key, value in settings.items())

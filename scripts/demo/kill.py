"""The crash: SIGKILL for the Spark job below this stack's Airflow, as the kernel does when memory runs out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from scripts.stack.process import marked


def kill_spark_job(airflow: Path, archive: str) -> int:
    """Kill spark-submit's JVM and the Python processes below it. Returns how many processes that were."""
    killed = 0
    for process in list(marked(airflow)):
        with suppress(psutil.NoSuchProcess):
            if _is_spark_submit(process.cmdline(), archive):
                for one in [process, *process.children(recursive=True)]:
                    one.kill()
                    killed += 1
    return killed


def _is_spark_submit(command: list[str], archive: str) -> bool:
    # The JVM, and not the Airflow task above it, which must live to see what happened.
    return "org.apache.spark.deploy.SparkSubmit" in command and f"archive_{archive}" in command

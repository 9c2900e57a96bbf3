"""Where Spark puts its own files when somebody has chosen the place: there, in directories that killed jobs leave too.

Without such a choice they are below the driver's temporary directory, which the task `archive` makes for each job.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

from pyspark import SparkConf, SparkContext

from kafka_archiver.errors import TransientError
from kafka_archiver.writer.disk import working_directory

_SETTING = "spark.local.dir"


def local_dirs(told: SparkConf) -> dict[str, str]:
    """Settings for the Spark context that this process is about to start.

    The directories are gone when the process has ended, and with the next such job of this machine if it was killed.

    :param told: what spark-submit was told.
    """
    chosen = told.get(_SETTING)
    # Of an executor's machine, and of a driver's in cluster mode, the cluster's manager takes care.
    elsewhere = told.get("spark.submit.deployMode") == "cluster" or "SPARK_LOCAL_DIRS" in os.environ
    if chosen is None or elsewhere or SparkContext._active_spark_context:
        return {}
    held = ExitStack()
    atexit.register(held.close)
    return {_SETTING: ",".join(_ours(directory.strip(), held) for directory in chosen.split(","))}


def _ours(chosen: str, held: ExitStack) -> str:
    try:
        Path(chosen).mkdir(parents=True, exist_ok=True)
        return str(held.enter_context(working_directory(Path(chosen))))
    except (OSError, TransientError):
        # Spark says so, and goes on with another if there is one.
        return chosen

"""Spark's own files, if `spark.local.dir` is set: in locked directories there, which later jobs remove after a kill.

Without the setting they are below the driver's temporary directory, which the task `archive` makes for each job.
"""

import atexit
import os
from contextlib import ExitStack
from pathlib import Path

from pyspark import SparkConf, SparkContext

from kafka_archiver.messages.errors import TransientError
from kafka_archiver.records.writer.disk import working_directory

_SETTING = "spark.local.dir"


def local_dirs(conf: SparkConf) -> dict[str, str]:
    """Settings for the Spark context that this process will start.

    The process removes the directories at its end; after a kill, the next job on this machine removes them.

    :param conf: the settings of spark-submit.
    """
    chosen = conf.get(_SETTING)
    # The cluster manager cleans up executors, and the driver in cluster mode.
    elsewhere = conf.get("spark.submit.deployMode") == "cluster" or "SPARK_LOCAL_DIRS" in os.environ
    if chosen is None or elsewhere or SparkContext._active_spark_context:
        return {}
    locks = ExitStack()
    atexit.register(locks.close)
    return {_SETTING: ",".join(_locked(directory.strip(), locks) for directory in chosen.split(","))}


def _locked(chosen: str, locks: ExitStack) -> str:
    try:
        Path(chosen).mkdir(parents=True, exist_ok=True)
        return str(locks.enter_context(working_directory(Path(chosen))))
    except (OSError, TransientError):
        # Spark reports the error itself, and uses another directory of the list.
        return chosen

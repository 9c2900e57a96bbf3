"""Spark's Python daemon for a job on this machine (`spark.python.daemon.module`): its workers start faster.

PySpark is imported from its installation instead of its zip, which has no compiled modules, and libraries are imported
once, before the daemon forks a worker for each core.
"""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module

from kafka_archiver.spark.unpacked import unpacked

# All of them leave this process with a single thread: a fork copies only the one that forks. So not pyarrow or numpy.
BEFORE_FORK = (
    "pyspark.worker",
    "boto3",
    "botocore.session",
    "confluent_kafka",
    "kafka_archiver.model.manifest",
    "kafka_archiver.store.s3",
)


def prepare() -> None:
    """Import what all workers need. A library that is missing here fails in the task, with its name."""
    # A tenth of a CPU second: an import makes many objects, and none is garbage.
    gc.disable()
    sys.path[:] = unpacked(sys.path, os.environ.get("SPARK_HOME", ""))
    for name in BEFORE_FORK:
        try:
            import_module(name)
        except ImportError:
            continue
    with suppress(Exception):
        from kafka_archiver.store.s3_client import load_models

        load_models()
    # Nor do the workers look at them, which would copy their memory.
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    prepare()
    from pyspark.daemon import manager

    manager()

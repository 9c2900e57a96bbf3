"""The work of the job `archive`."""

import os
import sys
from collections.abc import Callable

from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.spark.unpacked import unpacked
from kafka_archiver.store import open_store
from kafka_archiver.work.archive.engine import Engine
from kafka_archiver.work.archive.step import ArchiveStep

MakeEngine = Callable[[ArchiveJob, Endpoints], Engine]


def spark_engine(job: ArchiveJob, endpoints: Endpoints) -> Engine:
    """The engine that writes in Spark's tasks. Nothing imports PySpark before this call."""
    sys.path[:] = unpacked(sys.path, os.environ.get("SPARK_HOME", ""))
    from kafka_archiver.spark.engine import SparkEngine

    limits = Limits(
        memory_bytes=job.memory_bytes,
        max_paths=job.max_paths,
        record_seconds=job.record_seconds,
        record_memory_bytes=job.record_memory_bytes,
    )
    return SparkEngine(job.store, job.options(endpoints), dict(endpoints.kafka), limits, job.reader, endpoints.keys)


def run(job: ArchiveJob, endpoints: Endpoints, make_engine: MakeEngine = spark_engine) -> None:
    """Archive the runs in the document, one after the other."""
    store = open_store(job.store, job.options(endpoints))
    step = ArchiveStep(
        Cluster(endpoints.kafka),
        store,
        Ledger(store, job.archive, keyring_of(endpoints)),
        make_engine(job, endpoints),
        job.read_policies,
    )
    for name in job.runs:
        step.run(name)

"""The main program of the job `archive`: reads its document, archives the runs, and reports what failed."""

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.driver.unpacked import unpacked
from kafka_archiver.driver.watchdog import watch
from kafka_archiver.jobs.archive import ENDPOINTS, VERDICT, ArchiveJob, Endpoints
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ArchiverError, ConfigError, Failure
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.spark.failures import exit_code, one_line, understand
from kafka_archiver.store import open_store
from kafka_archiver.work.archive.engine import Engine
from kafka_archiver.work.archive.read_policies import ReadPolicies
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


def main(arguments: Sequence[str], make_engine: MakeEngine = spark_engine) -> int:
    """Archive the runs in the document, one after the other. Returns the exit code."""
    watch()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        job, endpoints = ArchiveJob.from_arguments(arguments), _endpoints()
        store = open_store(job.store, job.options(endpoints))
        step = ArchiveStep(
            Cluster(endpoints.kafka),
            store,
            Ledger(store, job.archive, keyring_of(endpoints)),
            make_engine(job, endpoints),
            ReadPolicies(job.lost_offsets, job.bad_record),
        )
        for run in job.runs:
            step.run(run)
    except Exception as error:  # noqa: BLE001 - the last line of the log must name any error
        return _failed(understand(error))
    return 0


def _endpoints() -> Endpoints:
    text = os.environ.get(ENDPOINTS)
    if not text:
        raise ConfigError(
            f"the environment variable {ENDPOINTS} is not set: expected JSON with `kafka` (client properties) and "
            "`store` (options), or @ and the name of a file with this JSON; the DAG's task `archive` sets the variable"
        )
    try:
        # On YARN, spark-submit ships a file: a variable would be in the containers' logs.
        return Endpoints.from_json(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise ConfigError(f"{ENDPOINTS} names a file that cannot be read: {error}") from None


def _failed(cause: Exception) -> int:
    if not isinstance(cause, ArchiverError):
        traceback.print_exc()
    elif place := os.environ.get(VERDICT):
        # If this fails, the task uses the exit code and the last line, as it does for a driver on another machine.
        with suppress(OSError):
            Path(place).write_text(Failure.of(cause).to_json(), encoding="ascii")
    sys.stdout.write(one_line(cause) + "\n")
    sys.stdout.flush()
    return exit_code(cause)

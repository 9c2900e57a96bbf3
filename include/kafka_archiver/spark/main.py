"""The command line of the Spark jobs."""

import argparse
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka_archiver.errors import ArchiverError, ConfigError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.spark.failures import exit_code, one_line, understand
from kafka_archiver.spark.finish import Choice
from kafka_archiver.spark.job import ArchiveJob, Engine
from kafka_archiver.spark.reading import Reader
from kafka_archiver.spark.unpacked import unpacked
from kafka_archiver.spark.watchdog import watch
from kafka_archiver.store import open_store
from kafka_archiver.writer.result import Limits

ENDPOINTS = "KAFKA_ARCHIVER_ENDPOINTS"
# Of the store's URL, the endpoints, the limits and the reader.
MakeEngine = Callable[[str, dict[str, dict[str, str]], Limits, Reader], Engine]


def spark_engine(url: str, endpoints: dict[str, dict[str, str]], limits: Limits, reader: Reader) -> Engine:
    """The engine that writes in Spark's tasks. Before this, PySpark is not imported."""
    sys.path[:] = unpacked(sys.path, os.environ.get("SPARK_HOME", ""))
    from kafka_archiver.spark.engine import SparkEngine

    return SparkEngine(url, endpoints["store"], endpoints["kafka"], limits, reader)


def archive(arguments: Sequence[str], make_engine: MakeEngine = spark_engine) -> int:
    """Archive runs, one after the other. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="archive.py", description="Archive planned runs of one archive.")
    parser.add_argument("--store", required=True, help="URL of the store: s3://bucket/prefix")
    parser.add_argument("--archive", required=True, help="name of the archive")
    parser.add_argument("--run", required=True, action="append", dest="runs", help="ledger's name of the run")
    parser.add_argument("--memory-bytes", type=int, default=Limits().memory_bytes, help="per task, before spilling")
    parser.add_argument("--reader", choices=("auto", "spark", "native"), default="auto", help="how records are read")
    parser.add_argument("--lost-offsets", choices=("fail", "record_loss"), default="fail", help="the archive's policy")
    parser.add_argument(
        "--bad-record", choices=("fail", "dead_letter", "skip"), default="fail", help="the archive's policy"
    )
    options = parser.parse_args(arguments)
    watch()
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        endpoints = _endpoints()
        limits = Limits(memory_bytes=options.memory_bytes)
        engine = make_engine(options.store, endpoints, limits, options.reader)
        store = open_store(options.store, endpoints["store"])
        choice = Choice(options.lost_offsets, options.bad_record)
        job = ArchiveJob(Cluster(endpoints["kafka"]), store, Ledger(store, options.archive), engine, choice)
        for run in options.runs:
            job.run(run)
    except Exception as error:  # noqa: BLE001 - the last line of the log says what it was, whatever it was
        cause = understand(error)
        if not isinstance(cause, ArchiverError):
            traceback.print_exc()
        sys.stdout.write(one_line(cause) + "\n")
        sys.stdout.flush()
        return exit_code(cause)
    return 0


def _endpoints() -> dict[str, dict[str, str]]:
    text = os.environ.get(ENDPOINTS)
    if not text:
        raise ConfigError(
            f"the environment variable {ENDPOINTS} is not set: expected JSON with `kafka` (client properties) and "
            "`store` (options), or @ and the name of a file with it; the DAG's task `archive` sets it"
        )
    try:
        # YARN ships a file beside the driver: a variable would be in its logs.
        found = json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
        return {name: {str(k): str(v) for k, v in found[name].items()} for name in ("kafka", "store")}
    except OSError as error:
        raise ConfigError(f"{ENDPOINTS} names a file that cannot be read: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        # The text holds credentials: it is not shown.
        raise ConfigError(f"{ENDPOINTS} is not JSON with `kafka` and `store`, each a mapping of strings") from None

"""Which engine writes a run. Imports Spark only for those that need it."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.spark.driver import DriverEngine
from kafka_archiver.spark.reading import Reader
from kafka_archiver.spark.unpacked import unpacked
from kafka_archiver.store import open_store
from kafka_archiver.writer.result import ChunkResult, Limits


@dataclass(frozen=True, slots=True)
class Engines:
    """Spark's tasks; with the reader `auto`, the driver itself for chunks of few offsets.

    A Spark context and its workers cost 3 CPU seconds and more to start, as much as half a million records.

    :param url, options: the store.
    :param kafka: librdkafka's client properties.
    :param driver_records: up to how many offsets the driver writes itself; 0: never.
    """

    url: str
    options: dict[str, str]
    kafka: dict[str, str]
    limits: Limits
    reader: Reader = "auto"
    driver_records: int = 0

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        """Write the chunks' objects, invisible until somebody completes them."""
        if self.reader == "auto" and sum(c.end - c.start for c in chunks) <= self.driver_records:
            engine = DriverEngine(self.kafka, open_store(self.url, self.options), self.limits)
            return engine.write(plan, chunks, bad_record)
        sys.path[:] = unpacked(sys.path, os.environ.get("SPARK_HOME", ""))
        from kafka_archiver.spark.engine import SparkEngine

        spark = SparkEngine(self.url, self.options, self.kafka, self.limits, self.reader)
        return spark.write(plan, chunks, bad_record)

"""The engine for plans that are not worth a Spark context: their chunks are written one after the other, here."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.spark.reading import describe, read_settings, whole_chunk
from kafka_archiver.store import Store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DriverEngine:
    """Reads with the native reader and writes, in this process. `kafka`: librdkafka's client properties."""

    kafka: Mapping[str, str]
    store: Store
    limits: Limits

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        """Write the chunks' objects, invisible until somebody completes them; nothing is left when one fails."""
        job = WriteJob.of(plan, bad_record)
        settings = read_settings(plan.settings, bad_record)
        results: list[ChunkResult] = []
        try:
            for number, chunk in enumerate(chunks, 1):
                started = time.monotonic()
                batches = read_chunk(self.kafka, plan.group, chunk, settings)
                result = write_chunk(whole_chunk(plan, chunk.name, chunk.start), batches, job, self.store, self.limits)
                results.append(result)
                log.info("chunk %d of %d: %s", number, len(chunks), describe(result, time.monotonic() - started))
        except BaseException:
            abort(results, self.store)
            raise
        return results

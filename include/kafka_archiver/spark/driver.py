"""The engine for plans that are not worth a Spark context: their chunks are written one after the other, here."""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from kafka_archiver.formats.known_bytes import require_known_bytes
from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.spark.reading import describe, read_settings, require_all, whole_chunk
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
        require_known_bytes(plan.settings, bad_record == "dead_letter")
        job = WriteJob.of(plan, bad_record)
        settings = read_settings(plan.settings, bad_record)
        results: list[ChunkResult] = []
        try:
            with closing(read_chunks(self.kafka, plan.group, chunks, settings)) as reads:
                for number, (chunk, batches) in enumerate(reads, 1):
                    started = time.monotonic()
                    whole = whole_chunk(plan, chunk.name, chunk.start)
                    result = write_chunk(whole, batches, job, self.store, self.limits)
                    results.append(result)
                    log.info("chunk %d of %d: %s", number, len(chunks), describe(result, time.monotonic() - started))
            require_all(plan, chunks, results)
        except BaseException:
            abort(results, self.store)
            raise
        return results

"""An engine without Spark: the native reader and the writer, chunk by chunk, in this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.plan import BadRecord, Chunk, Plan
from kafka_archiver.store import Store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob


@dataclass(frozen=True)
class PlainEngine:
    """What `SparkEngine` does in tasks. `kafka`: librdkafka's client properties."""

    kafka: Mapping[str, str]
    store: Store
    limits: Limits

    def write(self, plan: Plan, chunks: Sequence[Chunk], bad_record: BadRecord) -> list[ChunkResult]:
        job = WriteJob(archive=plan.archive, settings=plan.settings, revision=plan.revision, bad_record=bad_record)
        content = "record" if bad_record == "dead_letter" else plan.settings.content
        settings = plan.settings.model_copy(update={"content": content})
        results: list[ChunkResult] = []
        try:
            for chunk in chunks:
                whole = plan.chunk_of(chunk.name, chunk.start)
                assert whole is not None
                batches = read_chunk(self.kafka, plan.group, chunk, settings)
                results.append(write_chunk(whole, batches, job, self.store, self.limits))
        except BaseException:
            abort(results, self.store)
            raise
        return results

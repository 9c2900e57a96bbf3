"""The job without Spark tasks, for tests of everything else.

As a program, spark-submit runs it in the place of spark_jobs/archive.py.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from kafka_archiver.driver.archive import main
from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.plan import Chunk, Plan
from kafka_archiver.spark.reading import read_settings, whole_chunk
from kafka_archiver.store import Store, open_store
from kafka_archiver.writer.chunk import write_chunk
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.letters import read_letters
from kafka_archiver.writer.result import ChunkResult, Limits, WriteJob


@dataclass(frozen=True)
class PlainEngine:
    """Reads (with the native reader) and writes in this process. `kafka`: librdkafka's client properties."""

    kafka: Mapping[str, str]
    store: Store
    limits: Limits

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        settings = read_settings(plan.settings, job)
        results: list[ChunkResult] = []
        try:
            for chunk in chunks if plan.letters else ():
                batches = read_letters(self.store, chunk, plan.letters_of(chunk), job.data_keys)
                results.append(write_chunk(chunk, batches, job, self.store, self.limits))
            with closing(read_chunks(self.kafka, plan.group, () if plan.letters else chunks, settings)) as reads:
                for chunk, batches in reads:
                    whole = whole_chunk(plan, chunk.name, chunk.start)
                    results.append(write_chunk(whole, batches, job, self.store, self.limits))
        except BaseException:
            abort(results, self.store)
            raise
        return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], lambda job, to: PlainEngine(to.kafka, open_store(job.store, to.store), Limits())))

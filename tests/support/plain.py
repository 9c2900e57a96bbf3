"""The job without Spark tasks, for tests of everything else.

As a program, spark-submit runs it in the place of spark_jobs/archive.py.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from kafka_archiver.driver.archive import run
from kafka_archiver.driver.main import main
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.set_aside import FatalRecordsError, RecordAside
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.spark.reading import kafka_reader, wholes
from kafka_archiver.store import Store, open_store


@dataclass(frozen=True)
class PlainEngine:
    """Reads (with the native reader) and writes in this process. `kafka`: librdkafka's client properties."""

    kafka: Mapping[str, str]
    store: Store
    limits: Limits

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        results: list[ChunkResult] = []
        try:
            for chunk in chunks if plan.letters else ():
                batches = read_letters(self.store, chunk, plan.letters_of(chunk), job.data_keys)
                results.append(write_chunk(chunk, batches, job, self.store, self.limits))
            with closing(kafka_reader(plan, job, self.kafka)(() if plan.letters else chunks)) as reads:
                for whole, batches in wholes(plan, reads):
                    results.append(write_chunk(whole, batches, job, self.store, self.limits))
        except BaseException:
            abort(results, self.store)
            raise
        return results


@dataclass(frozen=True)
class EndingEngine(PlainEngine):
    """Finds that the record at offset `fatal` of each partition ends processes, unless the run knows it."""

    fatal: int = 0

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        known = {(r.topic, r.partition) for r in job.aside.records} if job.aside else set()
        if unknown := sorted({chunk.name for chunk in chunks} - known):
            reason = "no process survives this record: it ended the process by SIGSEGV"
            raise FatalRecordsError(
                RecordAside(topic=name.topic, partition=name.partition, offset=self.fatal, reason=reason)
                for name in unknown
            )
        return super().write(plan, chunks, job)


if __name__ == "__main__":
    make = lambda job, to: PlainEngine(to.kafka, open_store(job.store, to.store), Limits())  # noqa: E731
    sys.exit(main(sys.argv[1:], partial(run, make_engine=make)))

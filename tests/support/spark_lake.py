"""A lake whose SQL a real Spark evaluates in this process: no job, and no broker."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_archiver.config import Archive
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.formats.base import COLUMNS
from kafka_archiver.records.pipeline.transform.questions import columns_for, fields_for, parses_json
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.dead_letter_reader import read_letters
from kafka_archiver.records.writer.result import ChunkResult, Limits, WriteJob
from kafka_archiver.spark.analysis import answer
from kafka_archiver.spark.feed import SparkInput
from kafka_archiver.spark.reading import whole_chunk
from kafka_archiver.spark.results import Results
from kafka_archiver.spark.sink import Sink
from kafka_archiver.spark.spool import Segment, Spool
from kafka_archiver.spark.sql import made_by, prepare, schema_of, transformed
from tests.support.chunks import batch
from tests.support.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class SparkLake(Lake):
    """All topics have a plan's SQL in common. `size`: records in a batch."""

    spark: "SparkSession" = None  # type: ignore[assignment]
    size: int = 3

    def configure(self, archive: Archive) -> None:
        super().configure(archive)
        self.context = replace(self.context, spark=lambda question: answer(self.spark, question))

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        sql = plan.settings.transform and plan.settings.transform.sql
        assert sql
        prepare(self.spark, sql)
        sink: Any = Sink(plan, "", {}, Limits(), job, None, 1)  # type: ignore[arg-type]
        written_results: list[ChunkResult] = []
        for number, whole in enumerate(plan.chunks()):
            if not any(whole_chunk(plan, chunk.name, chunk.start) == whole for chunk in chunks):
                continue
            for_spark, name = SparkInput(sink, whole.topic), uuid.uuid4().hex
            spool, sent = Spool(name), [for_spark.batch(number, whole, batch([]).select(COLUMNS))[0]]
            for records in self._records(plan, whole, job):
                rows, unfit = for_spark.batch(number, whole, records)
                spool.write(Segment(number, whole, records, rows.num_rows, unfit))
                sent += [rows] * bool(rows.num_rows)
            spool.end()
            schema = schema_of(columns_for(fields_for(plan.settings, whole.topic, job.decoded, job.schemas)))
            frame = self.spark.createDataFrame(pa.Table.from_batches(sent[1:] or sent), schema)
            json = parses_json(plan.settings, whole.topic, job.decoded)
            transformed_frame = transformed(frame, sql, json, lambda: repr).frame
            assert made_by(transformed_frame) == sql.made.get(whole.topic)
            results = Results(sql, Spool(name), iter(transformed_frame.toArrow().to_batches(max_chunksize=4)))
            written_results.append(write_chunk(whole, results.records(number), job, self.store, Limits()))
            results.finish()
            spool.remove()
        return written_results

    def _records(self, plan: Plan, chunk: Chunk, job: WriteJob) -> list[pa.RecordBatch]:
        if plan.letters:
            return list(read_letters(self.store, chunk, plan.letters_of(chunk), job.data_keys))
        offsets = range(chunk.start, chunk.end)
        rows = [self._row(chunk.name, offset) for offset in offsets if (chunk.name, offset) not in self.absent]
        return [batch(rows[at : at + self.size]).select(COLUMNS) for at in range(0, len(rows), self.size)]

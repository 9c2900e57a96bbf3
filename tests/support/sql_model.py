"""The model test with Spark's SQL, which the job's own code evaluates: in Python workers, in tasks, with their spools.

Each evaluation finds another machine: its tasks, its batches, its time zone, and settings in spark.conf.
"""

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar
from unittest.mock import patch

import pyarrow as pa
from hypothesis.stateful import initialize
from pyspark.sql import SparkSession

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import Failure
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.spark import sql_tasks
from kafka_archiver.spark.analysis import answer
from kafka_archiver.spark.sink import Sink
from tests.support.actors import ChunkRecords
from tests.support.draws import SQL, SQL_TIMES, STORE
from tests.support.model import BEGIN, ISOLATION, Model, step

# What else spark.conf says, and the time zone of Java, in turns.
MACHINES: Sequence[tuple[dict[str, str], str]] = (
    ({}, "UTC"),
    ({"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false"}, "Pacific/Kiritimati"),
    ({"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.caseSensitive": "true"}, "America/St_Johns"),
    ({"spark.sql.execution.arrow.maxRecordsPerBatch": "1", "spark.sql.adaptive.enabled": "true"}, "Asia/Kathmandu"),
    ({"spark.sql.codegen.wholeStage": "false", "spark.sql.parser.escapedStringLiterals": "true"}, "Europe/Berlin"),
)


class KeepingSink(Sink):
    """Writes nothing: a task gives the records of a chunk, with Spark's results, to the driver."""

    def write(self, chunk: Chunk, batches: Iterable[pa.RecordBatch]) -> bytes:
        return pickle.dumps(((chunk, list(batches)), 0.0))


class Machines:
    """Evaluates SQL in a Spark that is another one each time."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._turns = itertools.count()

    def __call__(self, plan: Plan, job: WriteJob, records: Sequence[ChunkRecords]) -> list[ChunkRecords]:
        """Return the records of each chunk with what Spark made of them.

        :raises ArchiverError: as a task raises it.
        """
        turn = next(self._turns)
        assert plan.settings.transform
        assert plan.settings.transform.sql
        sink = KeepingSink(plan, "memory://nowhere", {}, Limits(), job, None, 1)
        by_chunk = {(chunk.name, chunk.start): [*_cut(batches, turn % 2 == 1)] for chunk, batches in records}

        def read(some: Sequence[Chunk]) -> Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]:
            for chunk in some:
                yield chunk, iter(by_chunk[chunk.name, chunk.start])

        def share(some: Sequence[Chunk], _cores: int) -> list[list[Chunk]]:
            return [[*some[n :: turn % 3 + 1]] for n in range(min(turn % 3 + 1, len(some)))]

        with (
            self._machine(*MACHINES[turn % len(MACHINES)]),
            patch.object(sql_tasks, "reader_of", lambda *_: read),
            patch.object(sql_tasks, "share", share),
        ):
            frame = sql_tasks.sql_frame(
                self.spark, [c for c, _ in records], {}, sink, plan.settings.transform.sql, False
            )
            outcomes = [pickle.loads(row["result"])[0] for row in frame.collect() if row["result"]]
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                raise outcome.error()
        results = {(chunk.name, chunk.end): batches for chunk, batches in outcomes}
        return [(chunk, results[chunk.name, chunk.end]) for chunk, _ in records]

    @contextmanager
    def _machine(self, settings: Mapping[str, str], zone: str) -> Iterator[None]:
        jvm: Any = self.spark._jvm
        zones, conf = jvm.java.util.TimeZone, self.spark.conf
        before = {name: conf.get(name, None) for name in settings}
        before_zone = zones.getDefault()
        zones.setDefault(zones.getTimeZone(zone))
        for name, value in settings.items():
            conf.set(name, value)
        try:
            yield
        finally:
            zones.setDefault(before_zone)
            for name, value in before.items():
                if value is None:
                    conf.unset(name)
                else:
                    conf.set(name, value)


def _cut(batches: Iterable[pa.RecordBatch], singly: bool) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from (batch.slice(row, 1) for row in range(batch.num_rows)) if singly else [batch]


class SqlModel(Model):
    """The model whose archives have SQL."""

    machines: ClassVar[Machines]

    @initialize(**{**BEGIN, "timestamp": SQL_TIMES, "transform": SQL})
    def begin(self, **drawn: Any) -> None:
        Model.begin(self, **drawn)
        self.strange.add("sql")

    @step(store=STORE, isolation=ISOLATION, transform=SQL)
    def reconfigure(self, **drawn: Any) -> None:
        Model.reconfigure(self, **drawn)

    def _context(self, archive: Archive, cluster: Any, store: Any, clock: Callable[[], datetime]) -> Context:
        context = Model._context(self, archive, cluster, store, clock)
        return replace(context, spark=lambda question: answer(self.machines.spark, question))

    def _sql(self, plan: Plan, job: WriteJob, records: Sequence[ChunkRecords]) -> Sequence[ChunkRecords]:
        return self.machines(plan, job, records)


def sql_model(spark: SparkSession) -> type[Model]:
    """Return the model on the twins, with Spark."""
    return type("SqlModel", (SqlModel,), {"machines": Machines(spark)})

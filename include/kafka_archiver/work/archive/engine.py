"""The interface of engines, which write the chunks of a run, so that the steps need no Spark."""

from collections.abc import Sequence
from typing import Protocol

from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.result import ChunkResult, WriteJob


class Engine(Protocol):
    """Writes chunks, somewhere; see :class:`kafka_archiver.spark.engine.SparkEngine`."""

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write the chunks' objects. They stay invisible until their uploads are completed."""

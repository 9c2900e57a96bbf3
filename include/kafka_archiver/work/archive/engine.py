"""The interface of engines, which write the chunks of a run, and the check of their results."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.writer.result import ChunkResult, WriteJob
from kafka_archiver.values.ranges import TopicPartition


class Engine(Protocol):
    """Writes chunks, somewhere; see :class:`kafka_archiver.spark.engine.SparkEngine`."""

    def write(self, plan: Plan, chunks: Sequence[Chunk], job: WriteJob) -> list[ChunkResult]:
        """Write the chunks' objects. They stay invisible until their uploads are completed."""


def require_all_results(plan: Plan, chunks: Sequence[Chunk], results: Sequence[ChunkResult]) -> None:
    """Require one result for each chunk: offsets without a result would count as absent from Kafka.

    :param chunks: the chunks that the engine was given, each as far as the log still has it.
    :param results: of whole chunks.
    :raises IntegrityError: a chunk has no result, or there are further results.
    """
    number_of = Counter((result.chunk.name, result.chunk.start) for result in results)
    # Of a chunk that the log no longer has in full, only the rest was read.
    missing = [c for c in chunks if (c.name, c.start) not in number_of and _whole_chunk(plan, c) not in number_of]
    if missing:
        more = f", nor have {len(missing) - 1:,} others" if len(missing) > 1 else ""
        raise _engine_fault(plan, f"{missing[0]} was given to the engine, and has no result{more}")
    if len(results) != len(chunks):
        twice = [f"{place} has {number}" for place, number in number_of.items() if number > 1]
        raise _engine_fault(
            plan, f"{len(chunks)} chunks were given to the engine, and have {len(results)} results {twice[:3]}"
        )


def _whole_chunk(plan: Plan, chunk: Chunk) -> tuple[TopicPartition, int] | None:
    whole = plan.chunk_of(chunk.name, chunk.start)
    return (whole.name, whole.start) if whole else None


def _engine_fault(plan: Plan, what: str) -> IntegrityError:
    return IntegrityError(
        f"run {plan.run}: {what}. Nothing of this attempt is stored; this is a fault of the engine, please report it"
    )

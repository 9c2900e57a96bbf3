"""What all engines have in common. Knows no Spark."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from kafka_archiver.errors import IntegrityError
from kafka_archiver.manifest import ChunkAccount
from kafka_archiver.plan import BadRecord, Chunk, Plan, Settings
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.writer.result import ChunkResult

# auto is native as long as no transform is written in Spark.
Reader = Literal["auto", "spark", "native"]


def read_settings(settings: Settings, bad_record: BadRecord) -> Settings:
    """What readers have to deliver: a dead letter has all that Kafka had, whatever the objects have."""
    return settings.model_copy(update={"content": "record"} if bad_record == "dead_letter" else {})


def whole_chunk(plan: Plan, name: TopicPartition, offset: int) -> Chunk:
    """The whole chunk that an offset is in.

    :raises IntegrityError: the plan does not have it.
    """
    chunk = plan.chunk_of(name, offset)
    if chunk is None:
        raise IntegrityError(f"offset {offset} of {name} was read, but is not in plan {plan.run}")
    return chunk


def require_all(plan: Plan, chunks: Sequence[Chunk], results: Sequence[ChunkResult]) -> None:
    """One result a chunk: offsets without any would be taken for such at which Kafka has no record.

    :param chunks: what the engine was given, of each as much as the log still has.
    :param results: of whole chunks.
    :raises IntegrityError: a chunk has none, or there are others.
    """
    found = Counter((result.chunk.name, result.chunk.start) for result in results)
    missing = [c for c in chunks if (c.name, c.start) not in found]
    # Of some only the rest was read.
    missing = [c for c in missing if (c.name, whole_chunk(plan, c.name, c.start).start) not in found]
    if missing:
        more = f", nor have {len(missing) - 1:,} others" if len(missing) > 1 else ""
        raise _fault(plan, f"{missing[0]} was given to the engine, and has no result{more}")
    if len(results) != len(chunks):
        twice = [f"{place} has {number}" for place, number in found.items() if number > 1]
        raise _fault(
            plan, f"{len(chunks)} chunks were given to the engine, and have {len(results)} results {twice[:3]}"
        )


def nothing_there(chunk: Chunk) -> ChunkResult:
    """The result of a chunk in which no record was found."""
    return ChunkResult(account=ChunkAccount.nothing_there(chunk), objects=())


def _fault(plan: Plan, what: str) -> IntegrityError:
    return IntegrityError(
        f"run {plan.run}: {what}. Nothing of this attempt is stored; this is a fault of the engine, please report it"
    )


def describe(result: ChunkResult, seconds: float) -> str:
    """A chunk that is written, in a few words."""
    count = result.account.archived
    return (
        f"{result.chunk}: {count:,} records in {len(result.objects)} objects, "
        f"{sum(o.upload.size for o in result.objects) / 1e6:.1f} MB, {count / max(seconds, 1e-6):,.0f} records/s"
    )

"""Code for both readers, without Spark."""

from kafka_archiver.errors import IntegrityError
from kafka_archiver.manifest import ChunkAccount
from kafka_archiver.plan import Chunk, Plan, Settings
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.writer.result import ChunkResult, WriteJob


def read_settings(settings: Settings, job: WriteJob) -> Settings:
    """The settings for readers: dead letters need all columns of a record, also if objects do not."""
    return settings.model_copy(update={"content": "record"} if job.needs_all_columns else {})


def whole_chunk(plan: Plan, name: TopicPartition, offset: int) -> Chunk:
    """The plan's chunk that has this offset.

    :raises IntegrityError: no chunk has it.
    """
    chunk = plan.chunk_of(name, offset)
    if chunk is None:
        raise IntegrityError(f"offset {offset} of {name} was read, but is not in plan {plan.run}")
    return chunk


def nothing_there(chunk: Chunk) -> ChunkResult:
    """The result of a chunk without records."""
    return ChunkResult(account=ChunkAccount.nothing_there(chunk), objects=())


def describe(result: ChunkResult, seconds: float) -> str:
    """A log line for a written chunk."""
    count = result.account.archived
    return (
        f"{result.chunk}: {count:,} records in {len(result.objects)} objects, "
        f"{sum(o.upload.size for o in result.objects) / 1e6:.1f} MB, {count / max(seconds, 1e-6):,.0f} records/s"
    )

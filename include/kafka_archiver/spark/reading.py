"""The chunks of a plan as tasks read them with librdkafka, without the records that are set aside. Without Spark."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby

import pyarrow as pa

from kafka_archiver.kafka.drain.library import why_not
from kafka_archiver.kafka.reader import read_chunks
from kafka_archiver.messages.actions import Advice, advise
from kafka_archiver.messages.advice import lose_offsets
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.model.settings import Settings
from kafka_archiver.records.writer.result import ChunkResult, WriteJob
from kafka_archiver.values.ranges import TopicPartition

log = logging.getLogger(__name__)


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


Reads = Generator[tuple[Chunk, Iterator[pa.RecordBatch]], None, None]


def kafka_reader(plan: Plan, job: WriteJob, properties: Mapping[str, str]) -> Callable[[Sequence[Chunk]], Reads]:
    """Return the native reader of a plan's chunks, without what is set aside: a chunk may come in parts.

    :param properties: librdkafka's client properties.
    """
    settings, aside = read_settings(plan.settings, job), job.aside

    def give_up(topic: str, partition: int, start: int, end: int) -> Advice:
        command = lose_offsets(plan.archive, plan.run, topic, partition, start, end)
        return advise("To go on without them, recorded as lost for ever: ", command)

    def read(some: Sequence[Chunk]) -> Reads:
        warn_of_python()
        parts = aside.readable(some) if aside else some
        return read_chunks(properties, plan.group, parts, settings, give_up=give_up)

    return read


@cache
def warn_of_python() -> None:
    """Log once in this process if it makes a Python object of each record."""
    if reason := why_not():
        log.warning("records are read in Python, which takes more CPU and gives the same: %s", reason)


def wholes(plan: Plan, reads: Reads) -> Iterator[tuple[Chunk, Iterator[pa.RecordBatch]]]:
    """Each chunk of the plan with the records of all its parts."""
    for whole, parts in groupby(reads, lambda part: whole_chunk(plan, part[0].name, part[0].start)):
        yield whole, (batch for _, records in parts for batch in records)


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

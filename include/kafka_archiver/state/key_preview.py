"""The keys that an archive would give to the newest records of its topics. Writes nothing, reads no store."""

from collections.abc import Iterator

from kafka_archiver.context.archive_context import Context
from kafka_archiver.kafka.reader import read_chunk
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.planning.schemas import freeze_schemas
from kafka_archiver.planning.settings import settings_of
from kafka_archiver.records.writer.chunk import write_chunk
from kafka_archiver.records.writer.result import Limits, WriteJob
from kafka_archiver.state.doctor.newest import PATIENCE_SECONDS, newest, planned, topics_of
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.documents import Value

# Topics whose records are read.
TOPICS = 5


class PreviewedObject(Value):
    """An object as it would be written of some records. `bytes`: of these alone."""

    key: str
    rows: int
    bytes: int


def preview_keys(context: Context) -> list[PreviewedObject]:
    """Write the newest records of each topic to memory, as a run does, and return the objects.

    :raises ArchiverError: the brokers do not answer, or a record cannot be archived as the YAML says.
    """
    topics = list(topics_of(context.archive, context.cluster))[:TOPICS]
    return [previewed for topic in topics for previewed in _of_topic(context, topic)]


def _of_topic(context: Context, topic: Topic) -> Iterator[PreviewedObject]:
    archive, settings = context.archive, settings_of(context.archive, context.keys)
    chunks = list(newest(archive, context.cluster, topic))
    frozen = freeze_schemas(context, settings, [planned(topic, chunk) for chunk in chunks])
    job = WriteJob(
        archive=archive.archive, settings=settings, decoded=frozen.schemas, schemas=frozen.texts, keys=context.keys
    )
    for chunk in chunks:
        batches = read_chunk(context.cluster.properties, archive.group, chunk, settings, PATIENCE_SECONDS)
        for written in write_chunk(chunk, batches, job, MemoryStore("preview"), Limits()).objects:
            yield PreviewedObject(key=written.upload.key, rows=written.rows, bytes=written.upload.size)

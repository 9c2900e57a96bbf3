"""A cluster to which a restore writes; `work/restore/target` says what each method promises."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.groups import Position
from kafka_archiver.kafka.reader import read_chunk, read_chunks
from kafka_archiver.kafka.topics import Topic
from kafka_archiver.kafka.transactional import LARGEST_BATCH, TransactionalWriter
from kafka_archiver.messages.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Isolation, Settings
from kafka_archiver.records.formats.base import UNREAD
from kafka_archiver.records.formats.shared.records import COLUMNS, normalised
from kafka_archiver.values.ranges import Range, TopicPartition

# The reader's group, for authorization; it neither joins it nor commits.
READER = "kafka-archiver-restore"


class KafkaTarget:
    """A real cluster.

    :param properties: librdkafka's client properties.
    :param patience: seconds without a record until the reader asks whether the brokers answer.
    """

    def __init__(self, properties: Mapping[str, str], patience: float = 120.0) -> None:
        self.cluster = Cluster(properties)
        self._properties, self._patience = dict(properties), patience

    def writer(self, transactional_id: str, name: TopicPartition) -> TransactionalWriter:
        """Become the only writer of a partition."""
        return TransactionalWriter(self._properties, transactional_id, name, self._largest_batch(name.topic))

    def _largest_batch(self, topic: str) -> int:
        try:
            return int(self.cluster.topic_settings([topic])[topic].get("max.message.bytes", LARGEST_BATCH))
        except PermanentError:
            # Not everybody may describe settings.
            return LARGEST_BATCH

    def progress(self, group: str, name: TopicPartition) -> Position | None:
        """Return the group's offset of a partition, once no transaction with one is open."""
        return self.cluster.positions(group, [name], stable=True)[name]

    def ends(self, name: TopicPartition) -> tuple[int, int]:
        """Return the last stable offset and the high watermark.

        :raises TransientError: the brokers do not agree on the leader.
        """
        high = self.cluster.high_watermarks([name])[name]
        if high.unsure:
            raise TransientError(f"the end of {name} is not sure: {high.unsure}; the next attempt asks again")
        return self.cluster.log_ends([name], "read_committed")[name], high.offset

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic; None if there is none."""
        return self.cluster.topic_ids([topic])[topic]

    def topic(self, name: str) -> Topic | None:
        """Return a topic; None if there is none."""
        return self.cluster.topics([name])[0] if self.topic_id(name) else None

    def read(self, name: TopicPartition, offsets: Range, isolation: Isolation) -> Iterator[pa.RecordBatch]:
        """Yield the records of some offsets, as `COLUMNS`."""
        if not offsets.size:
            return
        begin = self.cluster.log_starts([name])[name]
        if begin > offsets.start:
            raise PermanentError(
                f"{name} begins at offset {begin}, and the restore's records begin at {offsets.start}: retention has "
                "removed some, or somebody deleted them. Restore into a new topic with `retention.ms=-1`"
            )
        settings = Settings(content="record", isolation=isolation)
        for batch in read_chunk(self._properties, READER, _chunk(name, offsets), settings, self._patience):
            yield as_columns(batch, name)

    def count(self, name: TopicPartition, ranges: Sequence[Range]) -> int:
        """Return the number of records at these offsets, those of aborted transactions too."""
        chunks = [_chunk(name, offsets) for offsets in ranges]
        settings = Settings(content="value", isolation="read_uncommitted")
        # One consumer for all: most of the ranges are the single offset of a transaction's marker.
        of_chunks = read_chunks(self._properties, READER, chunks, settings, self._patience)
        return sum(batch.num_rows for _, batches in of_chunks for batch in batches)


def _chunk(name: TopicPartition, offsets: Range) -> Chunk:
    return Chunk(topic=name.topic, partition=name.partition, generation=0, start=offsets.start, end=offsets.end)


def as_columns(batch: pa.RecordBatch, name: TopicPartition) -> pa.RecordBatch:
    """Return what a reader gives as `COLUMNS`.

    :raises IntegrityError: a record cannot be read as it is; a restore writes no such record.
    """
    if UNREAD.name in batch.schema.names:
        raise IntegrityError(f"{name} has a record with a header whose key is not UTF-8: no restore has written it")
    return normalised(batch, COLUMNS)

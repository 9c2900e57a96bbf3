"""librdkafka's consumer for the native reader: it fetches little ahead, and never resets its offset."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka

from kafka_archiver.kafka.drain.client import DrainConsumer
from kafka_archiver.kafka.drain.handle import is_possible
from kafka_archiver.kafka.drain.library import library
from kafka_archiver.kafka.failures import Complaints, translate
from kafka_archiver.kafka.java_properties import native_properties
from kafka_archiver.kafka.messages import MessageBatch, Messages
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings

# The most bytes of an answer, and of a record batch that is decompressed (by zstd: a small one may want all memory).
# librdkafka requests a larger answer again and again for ever; fetch.max.bytes limits the size of a request.
UNPACKED = 2**31 - 1
_AHEAD = "queued.min.messages"
_AHEAD_KIB = 8 << 10
_TUNING = {
    # Fetch little ahead: records after the chunk's end are dropped, and records that wait leave the CPU's caches.
    "queued.max.messages.kbytes": _AHEAD_KIB,
    "fetch.message.max.bytes": 2 << 20,
    # After each answer without a record (an aborted transaction, for example) librdkafka asks for twice as much, up to:
    "fetch.max.bytes": 16 << 20,
    # A longer wait at the end of a log delays the next chunk and brings nothing.
    "fetch.wait.max.ms": 10,
    # With librdkafka's default of one second, a fast reader waits for the fetcher most of the time.
    "fetch.queue.backoff.ms": 5,
    "check.crcs": True,
}


class Consumer:
    """Reads one topic, one partition at a time.

    :param properties: librdkafka's client properties.
    :param group: the group for authorization; the consumer neither joins it nor commits.
    :param complaints: the consumer's `error_cb`.
    :ivar enough: how many messages the reader takes at once, by the size of those it has read.
    :raises PermanentError: librdkafka refuses the properties.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str,
        chunks: Sequence[Chunk],
        settings: Settings,
        complaints: Complaints,
    ) -> None:
        self._brokers = complaints.brokers
        self._config, self._complaints = _config(properties, group, chunks, settings), complaints
        self._chosen = _AHEAD in properties
        self.enough = 1
        self._ahead: Chunk | None = None
        self._inner = self._new()

    def _new(self) -> confluent_kafka.Consumer | DrainConsumer:
        try:
            if (functions := library()) and is_possible(self._config):
                return DrainConsumer(functions, self._config, self._complaints)
            return confluent_kafka.Consumer(self._config | {"error_cb": self._complaints})
        except confluent_kafka.KafkaException as error:
            raise translate(error.args[0], "start a consumer", self._brokers) from error

    def read_from(self, place: confluent_kafka.TopicPartition) -> None:
        """Continue at `place`. Drops records, and ends of logs, that were fetched for another place."""
        self._ahead = None
        self._inner.assign([place])

    def begin(self, chunk: Chunk) -> confluent_kafka.TopicPartition:
        """Continue at a chunk's start, unless `fetch_ahead` has begun there. Returns the place."""
        if self._ahead != chunk:
            self.read_from(_start(chunk))
        self._ahead = None
        return _start(chunk)

    def fetch_ahead(self, chunk: Chunk | None) -> None:
        """Fetch the next chunk while the records of the one before are processed; nothing if there is none.

        Otherwise librdkafka would ask again and again for records behind the chunk, and the next one would wait for it.
        """
        self._inner.assign([_start(chunk)] if chunk else [])
        self._ahead = chunk

    @property
    def without_objects(self) -> bool:
        """True if records become columns without a Python object each."""
        return isinstance(self._inner, DrainConsumer)

    def taking(self, most: int, sample: int = 1) -> MessageBatch:
        """Return what takes messages; close it before anything else is called here.

        :param most: how many it takes at most.
        :param sample: measure the keys and headers of one message in so many.
        """
        if isinstance(self._inner, DrainConsumer):
            return self._inner.taking(most, sample)
        return Messages(self._inner.consume, sample)

    def log_end(self, partition: confluent_kafka.TopicPartition, timeout: float) -> int:
        """The end of a partition's log. :raises KafkaException: no answer within `timeout` seconds."""
        _, end = self._inner.get_watermark_offsets(partition, timeout=timeout)
        return int(end)

    def hold_less(self, place: confluent_kafka.TopicPartition, uncounted: float) -> None:
        """Continue at `place` with fewer prefetched records if their keys and headers would take much memory.

        librdkafka limits prefetched records by number and by bytes, but it counts only the bytes of values.

        :param uncounted: average bytes of keys and headers per record.
        """
        if not self._chosen and uncounted * self._config[_AHEAD] > 4 * (_AHEAD_KIB << 10):
            self.close()
            self._config[_AHEAD] = max(1, int((_AHEAD_KIB << 10) / uncounted))
            self._inner = self._new()
            self.read_from(place)

    def close(self) -> None:
        self._inner.close()


def _start(chunk: Chunk) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(chunk.topic, chunk.partition, chunk.start)


def _config(properties: Mapping[str, str], group: str, chunks: Sequence[Chunk], settings: Settings) -> dict[str, Any]:
    return {
        **_TUNING,
        # Not more than a chunk needs; above 20,000 nothing gets faster.
        _AHEAD: min(20_000, max(chunk.end - chunk.start for chunk in chunks)),
        # A producer may share the connection, but librdkafka creates no consumer with a small message.max.bytes.
        **{name: value for name, value in native_properties(properties).items() if name != "message.max.bytes"},
        "group.id": group,
        "isolation.level": settings.isolation,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # A missing offset is an error, never a jump.
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "receive.message.max.bytes": UNPACKED,
        "log_level": 3,
    }

"""librdkafka's consumer as the native reader needs it: it fetches little ahead, and nothing by chance."""

from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka

from kafka_archiver.kafka.complaints import Complaints
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.java import native_properties
from kafka_archiver.plan import Chunk, Settings

_AHEAD = "queued.min.messages"
_AHEAD_KIB = 8 << 10
_TUNING = {
    # Little ahead: what is fetched behind a chunk's end is dropped, and what waits long has left the CPU's caches.
    "queued.max.messages.kbytes": _AHEAD_KIB,
    "fetch.message.max.bytes": 2 << 20,
    # librdkafka asks for twice as much after each answer without a record (of an aborted transaction, say), up to this.
    "fetch.max.bytes": 16 << 20,
    # The next chunk waits for the fetch under way, and at the end of a log there is nothing to wait for.
    "fetch.wait.max.ms": 10,
    # librdkafka's default of a second makes a reader that outruns the fetcher wait for it most of the time.
    "fetch.queue.backoff.ms": 5,
    "check.crcs": True,
}


class Consumer:
    """Reads one partition at a time, of one topic.

    :param properties: librdkafka's client properties.
    :param group: whose rights to use; nothing is committed, and the group is not joined.
    :param complaints: where librdkafka says what it does not get.
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
        self._config = _config(properties, group, chunks, settings) | {"error_cb": complaints}
        self._chosen = _AHEAD in properties
        self._inner = self._new()

    def _new(self) -> confluent_kafka.Consumer:
        try:
            return confluent_kafka.Consumer(self._config)
        except confluent_kafka.KafkaException as error:
            raise translate(error.args[0], "start a consumer", self._brokers) from error

    def read_from(self, place: confluent_kafka.TopicPartition) -> None:
        """From here on it gives no record that was fetched for another place, and no end of another log."""
        self._inner.assign([place])

    def consume(self, number: int, timeout: float) -> list[Any]:
        """So many messages, or those that come within `timeout` seconds."""
        return self._inner.consume(number, timeout=timeout)

    def log_end(self, partition: confluent_kafka.TopicPartition, timeout: float) -> int:
        """The end of a partition's log. :raises KafkaException: no answer within `timeout` seconds."""
        _, end = self._inner.get_watermark_offsets(partition, timeout=timeout)
        return int(end)

    def hold_less(self, place: confluent_kafka.TopicPartition, uncounted: float) -> None:
        """Go on at a place with fewer records ahead, if they would take much memory.

        librdkafka stops fetching at a number of records, or at so many bytes; but it counts those of values alone.

        :param uncounted: bytes of keys and headers that a record has.
        """
        if not self._chosen and uncounted * self._config[_AHEAD] > 4 * (_AHEAD_KIB << 10):
            self.close()
            self._config[_AHEAD] = max(1, int((_AHEAD_KIB << 10) / uncounted))
            self._inner = self._new()
            self.read_from(place)

    def close(self) -> None:
        """Leave the brokers."""
        self._inner.close()


def _config(properties: Mapping[str, str], group: str, chunks: Sequence[Chunk], settings: Settings) -> dict[str, Any]:
    return {
        **_TUNING,
        # Not much is fetched that is behind a chunk's end. More than so many ahead make nothing faster.
        _AHEAD: min(20_000, max(chunk.end - chunk.start for chunk in chunks)),
        # A producer's, who may share the connection: no consumer of less is made.
        **{name: value for name, value in native_properties(properties).items() if name != "message.max.bytes"},
        "group.id": group,
        "isolation.level": settings.isolation,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # An offset that is gone is an error, never a jump.
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        # No limit: librdkafka asks for a record above it again and again for ever, and calls one that was
        # compressed damaged. How much is wanted at a time, fetch.max.bytes says.
        "receive.message.max.bytes": 2**31 - 1,
        "log_level": 3,
    }

"""Asks a consumer for the times of single records of a log, here and there."""

from collections.abc import Collection, Mapping
from time import monotonic
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.first_records import looking_consumer
from kafka_archiver.values.ranges import TopicPartition

# Records at each place.
RECORDS = 3
# Nothing is behind the place that can be read.
_NOTHING = (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
_UNREADABLE = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION)


def times_behind(
    properties: Mapping[str, Any], places: Mapping[TopicPartition, Collection[int]], seconds: float, brokers: str
) -> dict[TopicPartition, dict[int, int]]:
    """Return the offsets and timestamps (ms) of the first records at or after each place. One consumer reads all.

    Control records are left out, and records that cannot be read; those of aborted transactions are not.
    A partition that gave no answer in time is not in the result.

    :param properties: librdkafka's client properties.
    :param seconds: to wait for the next record of any partition.
    :raises TransientError, PermanentError: a broker refuses a read.
    """
    waiting = {name: _Walk(offsets) for name, offsets in places.items() if offsets}
    times: dict[TopicPartition, dict[int, int]] = {name: {} for name in places if name not in waiting}
    if not waiting:
        return times
    consumer = looking_consumer(properties)
    try:
        consumer.assign([_place(name, walk.place) for name, walk in waiting.items()])
        end = monotonic() + seconds
        while waiting and monotonic() < end:
            for message in consumer.consume(100, 0.1):
                name = TopicPartition(str(message.topic()), message.partition() or 0)
                error, walk = message.error(), waiting.get(name)
                if walk is None or (error is not None and error.retriable()):
                    continue
                if error is not None and error.code() not in (*_NOTHING, *_UNREADABLE):
                    raise translate(error, f"read a record of {name}", brokers) from KafkaException(error)
                end = monotonic() + seconds
                if error is None:
                    moved = walk.see(message.offset(), int(message.timestamp()[1]))
                else:
                    moved = walk.skip() if error.code() in _UNREADABLE else walk.finish()
                if walk.is_done:
                    times[name] = waiting.pop(name).times
                    consumer.pause([_place(name)])
                elif moved:
                    consumer.seek(_place(name, walk.place))
    finally:
        consumer.close()
    return times


class _Walk:
    """The way through one log, from place to place."""

    def __init__(self, offsets: Collection[int]) -> None:
        self.times: dict[int, int] = {}
        self._left = sorted(set(offsets), reverse=True)

    @property
    def is_done(self) -> bool:
        return not self._left

    @property
    def place(self) -> int:
        return self._left[-1]

    def see(self, offset: int, time: int) -> bool:
        """Take the next record. Returns whether the consumer has to go elsewhere for the next one."""
        if offset < self.place:
            # Read before the consumer went on to this place.
            return False
        self.times[offset] = time
        while self._left and sum(known >= self.place for known in self.times) >= RECORDS:
            self._left.pop()
        return bool(self._left) and self.place > offset

    def skip(self) -> bool:
        """Go on to the next place."""
        self._left.pop()
        return bool(self._left)

    def finish(self) -> bool:
        """Take it that the log ends here."""
        self._left.clear()
        return False


def _place(name: TopicPartition, offset: int = -1001) -> Any:
    return confluent_kafka.TopicPartition(name.topic, name.partition, offset)

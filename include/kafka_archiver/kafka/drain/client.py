"""librdkafka's consumer through its C interface, for messages that never become Python objects.

It has the methods of `confluent_kafka.Consumer` that `kafka.consumer` calls, and raises the same errors.
"""

from collections.abc import Callable, Mapping
from ctypes import byref, c_int64

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_archiver.kafka.drain.handle import Handle, text_of
from kafka_archiver.kafka.drain.library import CONSUMER, Library
from kafka_archiver.kafka.drain.messages import DrainedMessages


class DrainConsumer:
    """A consumer.

    :param error_cb: takes librdkafka's errors, while messages are taken.
    :raises KafkaException: librdkafka refuses the properties.
    """

    def __init__(
        self, library: Library, config: Mapping[str, str | int], error_cb: Callable[[KafkaError], None]
    ) -> None:
        self._library, self._kafka = library, library.kafka
        self._handle = Handle(library, CONSUMER, config, error_cb)
        self._consumer = self._handle.client
        self._kafka.poll_set_consumer(self._consumer)
        self._queue = self._kafka.queue_get_consumer(self._consumer)

    def assign(self, places: list[TopicPartition]) -> None:
        """Continue at these places alone. :raises KafkaException: librdkafka refuses."""
        partitions = self._kafka.topic_partition_list_new(len(places))
        try:
            for place in places:
                topic = place.topic.encode()
                self._kafka.topic_partition_list_add(partitions, topic, place.partition)
                self._kafka.topic_partition_list_set_offset(partitions, topic, place.partition, place.offset)
            error = self._kafka.assign(self._consumer, partitions)
        finally:
            self._kafka.topic_partition_list_destroy(partitions)
        if error:
            raise KafkaException(KafkaError(error, f"Failed to set assignment: {text_of(self._kafka.err2str(error))}"))

    def taking(self, most: int, sample: int) -> DrainedMessages:
        """Return what takes up to `most` messages.

        :param sample: measure the headers of one message in so many.
        """
        return DrainedMessages(self._library, self.consume, most, sample)

    def consume(self, messages: int, number: int, timeout: float) -> int:
        """Write up to `number` pointers to address `messages`, those of what comes within `timeout` seconds.

        :raises KafkaException: librdkafka failed for ever.
        """
        count: int = self._kafka.consume_batch_queue(self._queue, int(1000 * timeout), messages, number)
        if count < 0:
            error = self._kafka.last_error()
            raise KafkaException(KafkaError(error, text_of(self._kafka.err2str(error))))
        if self._handle.fatal:
            self._library.drain.drop(byref(self._library.table), messages, count)
            raise KafkaException(self._handle.fatal)
        return count

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        """Return the start and end of a log. :raises KafkaException: no answer within `timeout` seconds."""
        low, high = c_int64(), c_int64()
        milliseconds = int(1000 * timeout)
        error = self._kafka.query_watermark_offsets(
            self._consumer, place.topic.encode(), place.partition, byref(low), byref(high), milliseconds
        )
        if error:
            reason = f"Failed to get watermark offsets: {text_of(self._kafka.err2str(error))}"
            raise KafkaException(KafkaError(error, reason))
        return low.value, high.value

    def close(self) -> None:
        """Close the connections. All messages must have been given back."""
        if self._consumer:
            consumer, self._consumer = self._consumer, 0
            self._kafka.consumer_close(consumer)
            self._kafka.queue_destroy(self._queue)
            self._kafka.destroy(consumer)

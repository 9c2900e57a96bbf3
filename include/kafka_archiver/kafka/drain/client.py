"""librdkafka's consumer through its C interface, for messages that never become Python objects.

It has the methods of `confluent_kafka.Consumer` that `kafka.consumer` calls, and raises the same errors.
"""

import ctypes
from collections.abc import Callable, Mapping
from ctypes import byref, c_int64

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_archiver.kafka.drain.library import CONSUMER, ErrorCallback, Library
from kafka_archiver.kafka.drain.messages import DrainedMessages

# What confluent_kafka itself does with these, its C interface does not.
_PYTHON_ALONE = ("plugin.library.paths", "default.topic.config")
_TOKEN_SOURCE = "sasl.oauthbearer.metadata.authentication.type"
_TEXT = 512


def is_possible(config: Mapping[str, object]) -> bool:
    """Return True if librdkafka alone can act on all properties; False if some need Python code of confluent_kafka."""
    if any(name in config for name in _PYTHON_ALONE) or config.get(_TOKEN_SOURCE) == "aws_iam":
        return False
    return all(isinstance(value, str | int) for value in config.values())


class DrainConsumer:
    """A consumer.

    :param error_cb: takes librdkafka's errors, while messages are taken.
    :raises KafkaException: librdkafka refuses the properties.
    """

    def __init__(
        self, library: Library, config: Mapping[str, str | int], error_cb: Callable[[KafkaError], None]
    ) -> None:
        self._library, self._kafka, self._error_cb = library, library.kafka, error_cb
        self._fatal: KafkaError | None = None
        # librdkafka calls it for as long as the consumer lives.
        self._callback = ErrorCallback(self._complain)
        self._consumer = self._new(config)
        self._kafka.poll_set_consumer(self._consumer)
        self._queue = self._kafka.queue_get_consumer(self._consumer)

    def _new(self, config: Mapping[str, str | int]) -> int:
        text = ctypes.create_string_buffer(_TEXT)
        conf = self._kafka.conf_new()
        try:
            for name, value in config.items():
                # As confluent_kafka: str() of True is True, which librdkafka takes.
                if self._kafka.conf_set(conf, name.encode(), str(value).encode(), text, _TEXT):
                    raise KafkaException(KafkaError(KafkaError._INVALID_ARG, _text(text.value)))
            self._kafka.conf_set_error_cb(conf, self._callback)
            consumer: int | None = self._kafka.new(CONSUMER, conf, text, _TEXT)
            if consumer is None:
                reason = f"Failed to create consumer: {_text(text.value)}"
                raise KafkaException(KafkaError(self._kafka.last_error(), reason))
        except BaseException:
            self._kafka.conf_destroy(conf)
            raise
        # The configuration is the consumer's.
        return consumer

    def _complain(self, consumer: int, code: int, reason: bytes | None, _: object) -> None:
        if code == KafkaError._FATAL:
            text = ctypes.create_string_buffer(_TEXT)
            code = self._kafka.fatal_error(consumer, text, _TEXT)
            self._fatal = KafkaError(code, _text(text.value), fatal=True)
        else:
            self._error_cb(KafkaError(code, _text(reason or b"")))

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
            raise KafkaException(KafkaError(error, f"Failed to set assignment: {_text(self._kafka.err2str(error))}"))

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
            raise KafkaException(KafkaError(error, _text(self._kafka.err2str(error))))
        if self._fatal:
            self._library.drain.drop(byref(self._library.table), messages, count)
            raise KafkaException(self._fatal)
        return count

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        """Return the start and end of a log. :raises KafkaException: no answer within `timeout` seconds."""
        low, high = c_int64(), c_int64()
        milliseconds = int(1000 * timeout)
        error = self._kafka.query_watermark_offsets(
            self._consumer, place.topic.encode(), place.partition, byref(low), byref(high), milliseconds
        )
        if error:
            reason = f"Failed to get watermark offsets: {_text(self._kafka.err2str(error))}"
            raise KafkaException(KafkaError(error, reason))
        return low.value, high.value

    def close(self) -> None:
        """Close the connections. All messages must have been given back."""
        if self._consumer:
            consumer, self._consumer = self._consumer, 0
            self._kafka.consumer_close(consumer)
            self._kafka.queue_destroy(self._queue)
            self._kafka.destroy(consumer)


def _text(text: bytes) -> str:
    return text.decode(errors="replace")

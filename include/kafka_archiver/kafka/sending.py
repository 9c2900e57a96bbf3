"""Transactional producers as the writer of a partition uses them, and the one that makes Python objects of records.

All of them raise KafkaException, as confluent_kafka does.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, pairwise, repeat
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.values.ranges import TopicPartition

# Seconds to wait for room in a full queue, until it is tried again.
PAUSE = 0.05
# The client drops records because another one was refused, or because it is closed.
DROPPED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class Answer(NamedTuple):
    """The broker's answers about a transaction's records: the offsets of the first and the last, or an error.

    Without an offset, the broker has the record and does not say where. The error is the first refusal; of what was
    dropped because of it, the client may speak before.
    """

    first: int | None = None
    last: int | None = None
    error: KafkaError | None = None


class Sender(Protocol):
    """A transactional producer of one partition. Not for several threads at once."""

    def init(self, seconds: float, /) -> None:
        """Fence earlier producers of the transactional id."""

    def begin(self) -> None:
        """Begin a transaction.

        :raises KafkaException: one is open; if that has failed, with the reason.
        """

    def send(self, batch: pa.RecordBatch, /) -> None:
        """Take over records of `COLUMNS`."""

    def poll(self, seconds: float, /) -> None:
        """Take answers, and wait for the next one."""

    def waiting(self) -> int:
        """Return how many records have no answer yet."""

    def flush(self, seconds: float, /) -> int:
        """Wait for the answers. Returns how many records have none."""

    def answer(self) -> Answer:
        """Return the answers about the open transaction, so far."""

    def send_offset(self, group: str, offset: int, stamp: str, seconds: float, /) -> None:
        """Set the group's offset of the partition in the open transaction."""

    def commit(self, seconds: float, /) -> None:
        """Commit the open transaction."""

    def purge(self) -> None:
        """Drop what is not sent yet."""

    def close(self) -> None:
        """Abort an open transaction, and close the connections."""


class ObjectSender:
    """Implements `Sender`: a call of confluent_kafka a record.

    :param error_cb: takes librdkafka's errors.
    :raises KafkaException: librdkafka refuses the properties.
    """

    def __init__(
        self, config: Mapping[str, Any], error_cb: Callable[[KafkaError], None], name: TopicPartition, brokers: str
    ) -> None:
        self._name, self._brokers = name, brokers
        self._producer = confluent_kafka.Producer({**config, "error_cb": error_cb})
        self._answers, self._sent = _Answers(), 0
        # The metadata of groups: each needs a consumer.
        self._groups: dict[str, Any] = {}

    def init(self, seconds: float) -> None:
        self._producer.init_transactions(seconds)

    def begin(self) -> None:
        self._producer.begin_transaction()
        self._answers, self._sent = _Answers(), 0

    def send(self, batch: pa.RecordBatch) -> None:
        # `produce_batch` of confluent-kafka drops timestamps and headers, so it is a call a record: the arguments by
        # position, which saves a third of the call.
        produce, topic, partition, answers = self._producer.produce, *self._name, self._answers
        rows = zip(
            batch.column("value").to_pylist(),
            batch.column("key").to_pylist(),
            batch.column("timestamp").to_pylist(),
            _header_pairs(batch.column("headers")),
            strict=True,
        )
        for value, key, timestamp, headers in rows:
            while True:
                try:
                    produce(topic, value, key, partition, answers, None, timestamp, headers)
                    break
                except BufferError:
                    self._producer.poll(PAUSE)
            self._sent += 1
        self._producer.poll(0)

    def poll(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def waiting(self) -> int:
        return self._sent - self._answers.records

    def flush(self, seconds: float) -> int:
        self._producer.flush(seconds)
        return self.waiting()

    def answer(self) -> Answer:
        answers = self._answers
        return Answer(error=answers.error) if answers.error else Answer(answers.first, answers.last)

    def send_offset(self, group: str, offset: int, stamp: str, seconds: float) -> None:
        if group not in self._groups:
            self._groups[group] = _group_metadata(self._brokers, group)
        place = confluent_kafka.TopicPartition(self._name.topic, self._name.partition, offset, stamp)
        self._producer.send_offsets_to_transaction([place], self._groups[group], seconds)

    def commit(self, seconds: float) -> None:
        self._producer.commit_transaction(seconds)

    def purge(self) -> None:
        self._producer.purge(blocking=False)

    def close(self) -> None:
        # A fenced producer cannot abort, and says so.
        with suppress(KafkaException, RuntimeError, SystemError, RuntimeWarning), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._producer.close()


class _Answers:
    """The answers about the records of a transaction, as drain.c notes them.

    librdkafka calls it while the producer is polled, for record after record as they were sent if none is refused.
    """

    def __init__(self) -> None:
        self.records = 0
        self.first: int | None = None
        self.last: int | None = None
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        self.records += 1
        if error is None:
            self.last = message.offset()
            if self.records == 1:
                self.first = self.last
        elif self.error is None or self.error.code() in DROPPED:
            self.error = error


def _header_pairs(headers: pa.Array) -> Iterator[list[tuple[str, str | bytes | None]] | None]:
    """Return the headers of each record as the client takes them; None for none."""
    items = headers.flatten()
    if not len(items):
        # Most topics have no headers, and Python objects for them cost as much as the records.
        return repeat(None, len(headers))
    pairs = list(zip(items.field("key").to_pylist(), items.field("value").to_pylist(), strict=True))
    ends = list(accumulate(headers.value_lengths().to_pylist()))
    return (pairs[start:end] or None for start, end in pairwise([0, *ends]))


def _group_metadata(brokers: str, group: str) -> Any:
    """Return the name of a group as the producer wants it: of a consumer that has not joined it."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": brokers, "group.id": group, "log_level": 2})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()

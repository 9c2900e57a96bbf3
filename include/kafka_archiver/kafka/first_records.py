"""Asks a consumer for single records of partitions, or whether a log was truncated before an offset.

The first record at an offset shows how old the backlog is. It, or a truncation, shows whether a log is still the log
that was archived.
"""

import re
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from kafka_archiver.kafka.failures import translate
from kafka_archiver.values.ranges import TopicPartition

# librdkafka reports a truncated log only in the text of an error with another code.
_CUT = str(KafkaError(KafkaError._LOG_TRUNCATION).str())
# No record can be read there: the log ends, it begins later, or the record batch cannot be decompressed.
_NO_RECORD = (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, KafkaError._BAD_COMPRESSION)
_CUT_AT = re.compile(r"broker end offset is (\d+)")
# Records at each place.
RECORDS = 3
# Nothing is behind the place that can be read.
_NOTHING = (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET)
_UNREADABLE = (KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION)


class LogEnd(NamedTuple):
    """The end of a log, and the leader epoch of that time; None if the brokers give no epochs.

    `unsure`: why the broker that said so may not be the leader any more; empty if it is.
    """

    offset: int
    leader_epoch: int | None
    unsure: str = ""


class FirstRecord(NamedTuple):
    """A record: its offset, timestamp (ms), leader epoch (None if the brokers give no epochs), and the CRC-32 of its
    value in hex (None for a null value). `appended`: the timestamp is the broker's (`LogAppendTime`).
    """

    offset: int
    timestamp: int
    leader_epoch: int | None
    value: str | None
    appended: bool = False


def crc32(value: bytes | None) -> str | None:
    """The CRC-32 of a value in hex; None for a null value."""
    return None if value is None else f"{zlib.crc32(value):08x}"


def known_epoch(epoch: int | None) -> int | None:
    """A leader epoch from librdkafka; None if the brokers give no epochs."""
    return epoch if epoch is not None and epoch >= 0 else None


def first_records(
    properties: Mapping[str, Any], starts: Mapping[TopicPartition, int], seconds: float, brokers: str
) -> dict[TopicPartition, FirstRecord | None]:
    """The first record of each partition at or after an offset; None if there is no record. One consumer reads all.

    A partition that gave no answer in time is not in the result.

    :param properties: librdkafka's client properties.
    :raises TransientError, PermanentError: a broker refuses a read.
    """
    places = [confluent_kafka.TopicPartition(n.topic, n.partition, offset) for n, offset in starts.items()]
    answers = _answers(properties, places, seconds, brokers, lambda name: f"read a record of {name}")
    return {name: None if message.error() else _record(message) for name, message in answers}


def truncated(
    properties: Mapping[str, Any], ends: Mapping[TopicPartition, LogEnd], seconds: float, brokers: str
) -> dict[TopicPartition, int | None]:
    """The offset at which each log was truncated before an earlier end (KIP-320); None if it was not.

    Other parameters and errors: as in `first_records`.

    :param ends: the end of each log under an earlier leader, or an offset before that end; with the leader epoch.
    """
    places = [
        confluent_kafka.TopicPartition(n.topic, n.partition, end.offset, leader_epoch=end.leader_epoch)
        for n, end in ends.items()
    ]

    def what(name: TopicPartition) -> str:
        return f"look for the end of leader epoch {ends[name].leader_epoch} in {name}"

    answers = _answers(properties, places, seconds, brokers, what)
    return {name: _cut(str(error.str())) if (error := message.error()) else None for name, message in answers}


def _cut(reason: str) -> int | None:
    """The offset at which a log was truncated, 0 if librdkafka does not name it; None if it was not truncated."""
    place = _CUT_AT.search(reason)
    return None if _CUT not in reason else int(place[1]) if place else 0


def _answers(
    properties: Mapping[str, Any],
    places: Iterable[Any],
    seconds: float,
    brokers: str,
    what: Callable[[TopicPartition], str],
) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield the first message of each place, or why there is none, from one consumer.

    A place without an answer in time is left out. :param what: what is done with a partition, for errors.
    """
    waiting = set(places)
    if not waiting:
        return
    consumer = looking_consumer(properties)
    try:
        consumer.assign(list(waiting))
        end = time.monotonic() + seconds
        while waiting and (left := end - time.monotonic()) > 0:
            for message in consumer.consume(len(waiting), min(left, 0.5)):
                place = confluent_kafka.TopicPartition(str(message.topic()), message.partition() or 0)
                error = message.error()
                if place not in waiting or (error is not None and error.retriable()):
                    continue
                name = TopicPartition(place.topic, place.partition)
                if error is not None and error.code() not in _NO_RECORD:
                    raise translate(error, what(name), brokers) from KafkaException(error)
                waiting.discard(place)
                consumer.pause([place])
                yield name, message
    finally:
        consumer.close()


def looking_consumer(properties: Mapping[str, Any]) -> Any:
    """Return a consumer that reads single records, and moves nobody's group."""
    return confluent_kafka.Consumer(
        {
            **properties,
            "group.id": "kafka-archiver-look",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            # One record per partition is enough; a broker sends at least one record batch.
            "fetch.message.max.bytes": 4096,
            "queued.min.messages": 1,
            # Else a partition waits for a second after each record that the consumer has not taken yet.
            "fetch.queue.backoff.ms": 5,
            "enable.partition.eof": True,
            "receive.message.max.bytes": 2**31 - 1,
            "log_level": 2,
        }
    )


def _record(message: Any) -> FirstRecord:
    epoch, value = known_epoch(message.leader_epoch()), crc32(message.value())
    kind, timestamp = message.timestamp()
    appended = kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
    return FirstRecord(message.offset(), int(timestamp), epoch, value, appended)


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
        end = time.monotonic() + seconds
        while waiting and time.monotonic() < end:
            for message in consumer.consume(100, 0.1):
                name = TopicPartition(str(message.topic()), message.partition() or 0)
                error, walk = message.error(), waiting.get(name)
                if walk is None or (error is not None and error.retriable()):
                    continue
                if error is not None and error.code() not in (*_NOTHING, *_UNREADABLE):
                    raise translate(error, f"read a record of {name}", brokers) from KafkaException(error)
                end = time.monotonic() + seconds
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

    def see(self, offset: int, moment: int) -> bool:
        """Take the next record. Returns whether the consumer has to go elsewhere for the next one."""
        if offset < self.place:
            # Read before the consumer went on to this place.
            return False
        self.times[offset] = moment
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

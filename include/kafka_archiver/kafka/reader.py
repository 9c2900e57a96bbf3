"""The native reader: reads chunks from the brokers through librdkafka, as Arrow batches.

It gives the same records as Spark's Kafka source, and stops at the chunk's end, also if there is no record.
"""

import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from typing import Any

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.kafka.complaints import Complaints
from kafka_archiver.kafka.consumer import Consumer
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.messages import Message, ToBatch, held_bytes, record_batch, to_batches, value_batch
from kafka_archiver.messages.actions import Advice
from kafka_archiver.messages.errors import ArchiverError, IntegrityError, PermanentError, TransientError
from kafka_archiver.model.plan import Chunk, Settings
from kafka_archiver.values.ranges import Range

# Of a topic, a partition and the start and end of offsets, how to go on without them.
GiveUp = Callable[[str, int, int, int], Advice]
# The limits of a batch: records, and approximate bytes, which are checked every ROUND records.
BATCH = 2000
BATCH_BYTES = 32 << 20
ROUND = 250
# Measure the keys and headers of one message in so many, if batches have neither.
SAMPLE = 8
# After so many seconds without a record or the log's end, check that the brokers answer at all …
PATIENCE_SECONDS = 120.0
# … at most so many times: librdkafka gives no message while it skips a long range of aborted transactions.
PATIENCES = 10
# How long to wait for the next message before the messages so far are processed.
PAUSE_SECONDS = 0.02
# How often to read a record batch that arrives damaged.
DAMAGED_TRIES = 3
# At or after a chunk's end, these mean that the chunk has no further record: a record, the log's end, or a record batch
# with the right checksum, and so the right offset.
_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_NOTHING_BEFORE = (None, KafkaError._PARTITION_EOF, KafkaError._BAD_COMPRESSION)


class NotUnpackedError(PermanentError):
    """A record batch cannot be decompressed. `offset`: its first one in the chunk."""

    def __init__(self, offset: int, error: ArchiverError) -> None:
        super().__init__(str(error))
        self.offset = offset


def read_chunks(
    properties: Mapping[str, str],
    group: str,
    chunks: Sequence[Chunk],
    settings: Settings,
    patience: float = PATIENCE_SECONDS,
    give_up: GiveUp = lambda *_: Advice(""),
) -> Generator[tuple[Chunk, Iterator[pa.RecordBatch]], None, None]:
    """Each chunk with its records in offset order: the columns of `VALUE`, or of `RECORD` without topic and partition.
    A batch with records that are not complete has the column `UNREAD` too.

    One consumer reads a topic, so take all records of a chunk before the next chunk.

    :param properties: librdkafka's client properties.
    :param group: the group for authorization; the consumer neither joins it nor commits.
    :param chunks: chunks of the same topic must be adjacent.
    :param patience: seconds without progress until the reader checks that the brokers answer.
    :param give_up: how to go on without offsets that no client can read; for messages.
    :raises PermanentError: the brokers refuse the credentials, or librdkafka refuses the properties; or a record batch
        cannot be decompressed.
    :raises TransientError: the brokers do not answer, or have lost a chunk's start; the log ends before a chunk; or
        records arrive damaged.
    """
    complaints = Complaints(properties["bootstrap.servers"])
    to_batch = record_batch if settings.whole_records else value_batch
    # A consumer per topic: librdkafka takes a second to notice an assignment to a new topic.
    for _, of_topic in groupby(chunks, key=lambda chunk: chunk.topic):
        some = list(of_topic)
        with _seldom_collecting(), closing(Consumer(properties, group, some, settings, complaints)) as consumer:
            for chunk in some:
                yield chunk, _readable(consumer, chunk, to_batch, complaints, patience, give_up)


def read_chunk(
    properties: Mapping[str, str], group: str, chunk: Chunk, settings: Settings, patience: float = PATIENCE_SECONDS
) -> Iterator[pa.RecordBatch]:
    """The records of one chunk, as `read_chunks` gives them."""
    for _, batches in read_chunks(properties, group, [chunk], settings, patience):
        yield from batches


def _readable(
    consumer: Consumer,
    chunk: Chunk,
    to_batch: ToBatch,
    complaints: Complaints,
    patience: float,
    give_up: GiveUp,
) -> Iterator[pa.RecordBatch]:
    """The records of a chunk; an error that names all offsets of a record batch that cannot be decompressed."""
    try:
        yield from _read(consumer, chunk, to_batch, complaints, patience)
    except NotUnpackedError as error:
        end = _end_of_batch(consumer, chunk, error.offset)
        way_on = give_up(chunk.topic, chunk.partition, error.offset, end)
        raise PermanentError(f"{error}. Its offsets here are {Range(error.offset, end)}.", *way_on) from None


def _end_of_batch(consumer: Consumer, chunk: Chunk, offset: int) -> int:
    """The end of the batch at `offset`, or the chunk's: from within it, the client gives the same error again."""

    def inside(place: int) -> bool:
        consumer.read_from(confluent_kafka.TopicPartition(chunk.topic, chunk.partition, place))
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            for message in consumer.consume(1, timeout=1.0):
                error = message.error()
                if error is None or error.code() == KafkaError._PARTITION_EOF:
                    return False
                if error.code() == KafkaError._BAD_COMPRESSION:
                    return (message.offset() or 0) <= place
        return False

    low, step = offset, 1
    while low + step < chunk.end and inside(low + step):
        low, step = low + step, 2 * step
    high = min(low + step, chunk.end)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return high


def _read(
    consumer: Consumer, chunk: Chunk, to_batch: ToBatch, complaints: Complaints, patience: float
) -> Iterator[pa.RecordBatch]:
    brokers = complaints.brokers
    place = confluent_kafka.TopicPartition(chunk.topic, chunk.partition, chunk.start)
    consumer.read_from(place)
    complaints.forget()
    damaged = silences = 0
    silent_since = time.monotonic()
    sample = 1 if to_batch is record_batch else SAMPLE
    # Few at first, until their size is known. The topic's next chunk begins with as many as are measured at once.
    enough = min(consumer.enough, ROUND)
    while True:
        messages, counted, uncounted = _take(consumer, min(enough, chunk.end - place.offset), sample)
        inside, ended, again = _inside(messages, chunk, brokers) if messages else ([], False, None)
        if inside:
            _require_place(inside, chunk)
            place.offset = inside[-1].offset() + 1
            if not ended:
                # Before the records are processed: librdkafka prefetches in the meantime.
                consumer.hold_less(place, uncounted / len(messages))
            yield from to_batches(inside, to_batch)
            enough = min(BATCH, 8 * enough, 1 + BATCH_BYTES * len(messages) // (counted + uncounted + 1))
            consumer.enough = enough
            damaged = silences = 0
            silent_since = time.monotonic()
            complaints.forget()
        if ended:
            return
        if again:
            damaged += again.code() == KafkaError._BAD_MSG
            if damaged == DAMAGED_TRIES:
                raise translate(again, f"read {chunk}", brokers)
            # librdkafka would continue after the damaged batch, or stop.
            consumer.read_from(place)
        if refusal := complaints.refusal(time.monotonic() - silent_since):
            raise _refused(refusal, chunk, brokers)
        elif time.monotonic() > silent_since + patience:
            silences += 1
            _require_life(consumer, chunk, brokers, silences, patience)
            silent_since = time.monotonic()


def _take(consumer: Consumer, number: int, sample: int = 1) -> tuple[list[Any], int, int]:
    """Up to `number` messages, fewer at a pause, at the log's end, after an error, or if they are large; and the two
    numbers of `held_bytes`.

    In rounds: librdkafka would wait for all `number` messages, and a chunk may have fewer records than offsets.
    """
    messages: list[Any] = []
    counted = uncounted = 0
    while len(messages) < number and counted + uncounted < BATCH_BYTES:
        some = consumer.consume(min(number - len(messages), ROUND), timeout=PAUSE_SECONDS)
        messages += some
        values, other_bytes = held_bytes(some, sample)
        counted, uncounted = counted + values, uncounted + other_bytes
        if not some or some[-1].error():
            break
    return messages, counted, uncounted


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Run Python's garbage collector less often: thousands of messages trigger it all the time, and have no cycles.

    Saves a third of the CPU at 140 bytes a record.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _require_life(consumer: Consumer, chunk: Chunk, brokers: str, silences: int, patience: float) -> None:
    """:raises TransientError: waiting is useless: the brokers do not answer, or the log ends before the chunk."""
    try:
        if silences < PATIENCES:
            partition = confluent_kafka.TopicPartition(chunk.topic, chunk.partition)
            end = consumer.log_end(partition, timeout=max(1.0, min(patience, 30.0)))
            if end >= chunk.end:
                return
            raise TransientError(
                f"the log of {chunk.name} at {brokers} ends at {end}, before the end of {chunk}: its leader has to "
                "catch up, or an unclean leader election truncated the log after the run was planned"
            )
    except confluent_kafka.KafkaException:
        pass
    raise TransientError(
        f"no answer from the Kafka brokers at {brokers} within {silences * patience:.0f} s while reading {chunk}"
    )


def _inside(messages: list[Any], chunk: Chunk, brokers: str) -> tuple[list[Any], bool, KafkaError | None]:
    """The messages of the chunk; whether they reach the chunk's end, by a later record or the end of the log; and an
    error after which the consumer has to be assigned again: a damaged record batch, or missing offsets after the chunk.
    """
    clean = len(messages)
    if any(map(Message.error, messages)):
        clean = next(place for place, message in enumerate(messages) if message.error())
    if clean and messages[clean - 1].offset() >= chunk.end - 1:
        # The chunk is complete: whatever follows concerns later offsets.
        return messages[: bisect_left(messages, chunk.end, hi=clean, key=Message.offset)], True, None
    inside = messages[:clean]
    for message in messages[clean:]:
        error = message.error()
        code = None if error is None else error.code()
        if code is None and message.offset() < chunk.end:
            inside.append(message)
        elif inside and inside[-1].offset() == chunk.end - 1:
            # The chunk is complete: any further message concerns later offsets.
            break
        elif code in _NOTHING_BEFORE and (message.offset() or 0) >= chunk.end:
            return inside, True, None
        elif code == KafkaError._PARTITION_EOF:
            continue
        elif code == KafkaError._BAD_MSG:
            return inside, False, error
        elif code == KafkaError._AUTO_OFFSET_RESET:
            if message.partition() != chunk.partition:
                continue
            if message.offset() >= chunk.end:
                # Prefetched offsets after this chunk, or after the one before, are gone, and librdkafka has stopped.
                return inside, False, error
            raise TransientError(
                f"the leader of {chunk.name} does not have the start of {chunk}: retention overtook the run while it "
                "was reading, or this broker leads no more; the next attempt asks the others, reads what is left, "
                "and `policies.lost_offsets` decides about what is gone"
            )
        elif code == KafkaError._BAD_COMPRESSION:
            # What comes before it is of no use: the chunk fails.
            offset = max(message.offset() or 0, inside[-1].offset() + 1 if inside else chunk.start)
            raise NotUnpackedError(offset, translate(error, f"read {chunk}", brokers))
        elif not error.retriable():
            raise _refused(error, chunk, brokers)
    return inside, bool(inside) and inside[-1].offset() == chunk.end - 1, None


def _refused(error: KafkaError, chunk: Chunk, brokers: str) -> ArchiverError:
    if error.code() in _UNKNOWN:
        return TransientError(
            f"a broker at {brokers} does not know {chunk.name}, which was there when the run was planned; the next "
            "attempt asks others whether it is gone"
        )
    return translate(error, f"read {chunk}", brokers)


def _require_place(messages: list[Any], chunk: Chunk) -> None:
    """:raises IntegrityError: librdkafka gave records of another partition."""
    for message in (messages[0], messages[-1]):
        if (message.topic(), message.partition()) != chunk.name:
            raise IntegrityError(
                f"got a record of {message.topic()}[{message.partition()}] while reading {chunk}. Nothing of this "
                "chunk is stored; this is a fault of the reader, please report it."
            )

"""The native reader: chunks straight from the brokers through librdkafka, as Arrow batches.

It sees what Spark's Kafka source sees, and stops where the chunk ends, whether a record is there or not.
"""

import gc
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from typing import Any

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.errors import IntegrityError, TransientError
from kafka_archiver.kafka.complaints import Complaints
from kafka_archiver.kafka.consumer import Consumer
from kafka_archiver.kafka.failures import translate
from kafka_archiver.kafka.messages import Message, ToBatch, held_bytes, record_batch, to_batches, value_batch
from kafka_archiver.plan import Chunk, Settings

# A batch: records, and about how many bytes they hold, looked at after so many records.
BATCH = 2000
BATCH_BYTES = 32 << 20
ROUND = 250
# Of so many messages in a row, one's headers are measured, where a batch has none.
SAMPLE = 8
# Without a record, or word that there is none, for so long, the brokers are asked whether they are there at all …
PATIENCE_SECONDS = 120.0
# … and that often: a long stretch of aborted transactions is read in silence.
PATIENCES = 10
# How long a message is waited for before those that have come are looked at.
PAUSE_SECONDS = 0.02
# How often a set of records that arrives damaged is read again.
DAMAGED_TRIES = 3
# Behind a chunk's end these say that there is nothing more before it: a record, the log's end, or a set of records with
# the right checksum, and so the right offset.
_NOTHING_BEFORE = (None, KafkaError._PARTITION_EOF, KafkaError._BAD_COMPRESSION)


def read_chunks(
    properties: Mapping[str, str],
    group: str,
    chunks: Sequence[Chunk],
    settings: Settings,
    patience: float = PATIENCE_SECONDS,
) -> Generator[tuple[Chunk, Iterator[pa.RecordBatch]], None, None]:
    """Each chunk with its records in offset order: the columns of `VALUE`, or of `RECORD` without topic and partition.
    A batch with records that cannot be read whole has the column `UNREAD` too.

    A consumer a topic, so a chunk's records have to be taken before the next chunk.

    :param properties: librdkafka's client properties.
    :param group: whose rights to use; nothing is committed, and the group is not joined.
    :param chunks: those of one topic one behind the other.
    :param patience: seconds without any progress until the brokers have to give a sign of life.
    :raises PermanentError: the brokers refuse the credentials, or librdkafka the properties.
    :raises TransientError: the brokers do not answer, do not have a chunk's start any more, the log ends before a chunk
        does, or what comes is damaged.
    """
    complaints = Complaints(properties["bootstrap.servers"])
    to_batch = record_batch if settings.content == "record" else value_batch
    # A consumer that is given another topic than its first learns of it by a timer, a second later.
    for _, of_topic in groupby(chunks, key=lambda chunk: chunk.topic):
        some = list(of_topic)
        with _seldom_collecting(), closing(Consumer(properties, group, some, settings, complaints)) as consumer:
            for chunk in some:
                yield chunk, _read(consumer, chunk, to_batch, complaints, patience)


def read_chunk(
    properties: Mapping[str, str], group: str, chunk: Chunk, settings: Settings, patience: float = PATIENCE_SECONDS
) -> Iterator[pa.RecordBatch]:
    """The records of one chunk, as `read_chunks` gives them."""
    for _, batches in read_chunks(properties, group, [chunk], settings, patience):
        yield from batches


def _read(
    consumer: Consumer, chunk: Chunk, to_batch: ToBatch, complaints: Complaints, patience: float
) -> Iterator[pa.RecordBatch]:
    brokers = complaints.brokers
    place = confluent_kafka.TopicPartition(chunk.topic, chunk.partition, chunk.start)
    consumer.read_from(place)
    complaints.forget()
    damaged = silences = 0
    silent_since = time.monotonic()
    enough, sample = 1, 1 if to_batch is record_batch else SAMPLE
    while True:
        messages, counted, uncounted = _take(consumer, min(enough, chunk.end - place.offset), sample)
        wanted, ended, again = _inside(messages, chunk, brokers) if messages else ([], False, None)
        if wanted:
            _require_place(wanted, chunk)
            place.offset = wanted[-1].offset() + 1
            if not ended:
                # Before anybody does anything with them: librdkafka goes on meanwhile.
                consumer.hold_less(place, uncounted / len(messages))
            yield from to_batches(wanted, to_batch)
            enough = min(BATCH, 8 * enough, 1 + BATCH_BYTES * len(messages) // (counted + uncounted + 1))
            damaged = silences = 0
            silent_since = time.monotonic()
            complaints.forget()
        if ended:
            return
        if again:
            damaged += again.code() == KafkaError._BAD_MSG
            if damaged == DAMAGED_TRIES:
                raise translate(again, f"read {chunk}", brokers)
            # librdkafka would go on behind the damaged set, or not at all.
            consumer.read_from(place)
        if refusal := complaints.refusal(time.monotonic() - silent_since):
            raise complaints.translate(refusal, f"read {chunk}")
        elif time.monotonic() > silent_since + patience:
            silences += 1
            _require_life(consumer, chunk, brokers, silences, patience)
            silent_since = time.monotonic()


def _take(consumer: Consumer, number: int, sample: int = 1) -> tuple[list[Any], int, int]:
    """So many messages; fewer at a pause, at the log's end, after a message that is an error, or when they are large.
    And the bytes that librdkafka counts, and those that it does not, as `held_bytes` says.

    librdkafka waits for as many as it is asked for, and a chunk may have fewer records than offsets.
    """
    messages: list[Any] = []
    counted = uncounted = 0
    while len(messages) < number and counted + uncounted < BATCH_BYTES:
        some = consumer.consume(min(number - len(messages), ROUND), timeout=PAUSE_SECONDS)
        messages += some
        values, others = held_bytes(some, sample)
        counted, uncounted = counted + values, uncounted + others
        if not some or some[-1].error():
            break
    return messages, counted, uncounted


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Look for cycles less often: thousands of messages at a time make Python look all the time, and they have none.

    A third of the CPU at 140 bytes a record.
    """
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _require_life(consumer: Consumer, chunk: Chunk, brokers: str, silences: int, patience: float) -> None:
    """:raises TransientError: there is no reason to wait for more of the chunk."""
    try:
        if silences < PATIENCES:
            partition = confluent_kafka.TopicPartition(chunk.topic, chunk.partition)
            end = consumer.log_end(partition, timeout=max(1.0, min(patience, 30.0)))
            if end >= chunk.end:
                return
            raise TransientError(
                f"the log of {chunk.name} at {brokers} ends at {end}, before the end of {chunk}: its leader has to "
                "catch up, or the log was truncated (an unclean leader election) after the run was planned"
            )
    except confluent_kafka.KafkaException:
        pass
    raise TransientError(
        f"no answer from the Kafka brokers at {brokers} within {silences * patience:.0f} s while reading {chunk}"
    )


def _inside(messages: list[Any], chunk: Chunk, brokers: str) -> tuple[list[Any], bool, KafkaError | None]:
    """The messages of the chunk up to where librdkafka has to begin again; whether the chunk's end has been reached, by
    a later record or by the end of the log; and why to begin again: records that came damaged, or are gone behind the
    chunk."""
    last = messages[-1]
    if not any(map(Message.error, messages)) and last.offset() < chunk.end - 1:
        return messages, False, None
    wanted = []
    for message in messages:
        error = message.error()
        code = None if error is None else error.code()
        if code is None and message.offset() < chunk.end:
            wanted.append(message)
        elif wanted and wanted[-1].offset() == chunk.end - 1:
            # Whatever else it is, it is about what is behind the chunk.
            break
        elif code in _NOTHING_BEFORE and (message.offset() or 0) >= chunk.end:
            return wanted, True, None
        elif code == KafkaError._PARTITION_EOF:
            continue
        elif code == KafkaError._BAD_MSG:
            return wanted, False, error
        elif code == KafkaError._AUTO_OFFSET_RESET:
            if message.partition() != chunk.partition:
                continue
            if message.offset() >= chunk.end:
                # What was fetched behind this chunk, or behind the chunk before, is gone. librdkafka has stopped there.
                return wanted, False, error
            raise TransientError(
                f"Kafka does not have the start of {chunk} any more: retention overtook the run while it was read; "
                "the next attempt sees what is left, and `policies.lost_offsets` decides"
            )
        elif not error.retriable():
            raise translate(error, f"read {chunk}", brokers)
    return wanted, bool(wanted) and wanted[-1].offset() == chunk.end - 1, None


def _require_place(messages: list[Any], chunk: Chunk) -> None:
    """:raises IntegrityError: librdkafka gave records of another partition, which would be archived as this one's."""
    for message in (messages[0], messages[-1]):
        if (message.topic(), message.partition()) != chunk.name:
            raise IntegrityError(
                f"a record of {message.topic()}[{message.partition()}] came while reading {chunk}. Nothing of this "
                "chunk is stored; this is a fault of the reader, please report it."
            )

"""The native reader: reads chunks from the brokers through librdkafka, as Arrow batches.

It gives the same records as Spark's Kafka source, and stops at the chunk's end, also if there is no record.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby

import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError

from kafka_archiver.kafka.consumer import Consumer
from kafka_archiver.kafka.failures import UNKNOWN, Complaints, translate
from kafka_archiver.kafka.messages import Fault, MessageBatch
from kafka_archiver.messages.actions import Advice
from kafka_archiver.messages.errors import ArchiverError, IntegrityError, PermanentError, TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.columns import Int64s
from kafka_archiver.values.garbage_collector import seldom_collecting
from kafka_archiver.values.ranges import Range

# Of a topic, a partition and the start and end of offsets, how to go on without them.
GiveUp = Callable[[str, int, int, int], Advice]
# The limits of a batch: records, and approximate bytes, which are checked every ROUND records.
BATCH = 2000
BATCH_BYTES = 32 << 20
ROUND = 250
# Without Python objects records take less memory: so many times more, while a batch stays within the CPU's caches.
WITHOUT_OBJECTS = 4
CACHED_BYTES = 5 << 19
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
_NOTHING_BEFORE = (KafkaError._PARTITION_EOF, KafkaError._BAD_COMPRESSION)


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
    # A consumer per topic: librdkafka takes a second to notice an assignment to a new topic.
    for _, of_topic in groupby(chunks, key=lambda chunk: chunk.topic):
        some = list(of_topic)
        with seldom_collecting(), closing(Consumer(properties, group, some, settings, complaints)) as consumer:
            for chunk, following in zip(some, [*some[1:], None], strict=True):
                records = _readable(consumer, chunk, following, settings.whole_records, complaints, patience, give_up)
                yield chunk, records


def read_chunk(
    properties: Mapping[str, str], group: str, chunk: Chunk, settings: Settings, patience: float = PATIENCE_SECONDS
) -> Iterator[pa.RecordBatch]:
    """The records of one chunk, as `read_chunks` gives them."""
    for _, batches in read_chunks(properties, group, [chunk], settings, patience):
        yield from batches


def _readable(
    consumer: Consumer,
    chunk: Chunk,
    following: Chunk | None,
    whole: bool,
    complaints: Complaints,
    patience: float,
    give_up: GiveUp,
) -> Iterator[pa.RecordBatch]:
    """The records of a chunk; an error that names all offsets of a record batch that cannot be decompressed."""
    try:
        yield from _read(consumer, chunk, following, whole, complaints, patience)
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
            with closing(consumer.taking(1)) as taken:
                taken.more(1, 1.0)
                if len(taken.offsets):
                    return False
                for fault in taken.faults:
                    if fault.error.code() == KafkaError._PARTITION_EOF:
                        return False
                    if fault.error.code() == KafkaError._BAD_COMPRESSION:
                        return fault.offset <= place
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
    consumer: Consumer, chunk: Chunk, following: Chunk | None, whole: bool, complaints: Complaints, patience: float
) -> Iterator[pa.RecordBatch]:
    brokers = complaints.brokers
    place = consumer.begin(chunk)
    complaints.forget()
    damaged = silences = 0
    silent_since = time.monotonic()
    sample = 1 if whole else SAMPLE
    # Few at first, until their size is known. The topic's next chunk begins with as many as are measured at once.
    pace = WITHOUT_OBJECTS if consumer.without_objects else 1
    enough = min(consumer.enough, pace * ROUND)
    while True:
        most = min(enough, chunk.end - place.offset)
        with closing(consumer.taking(most, sample)) as taken:
            _take(taken, most, pace * ROUND)
            offsets = taken.offsets
            count, ended, again = _inside(offsets, taken.faults, chunk, brokers)
            # In memory of their own.
            batches = _batches(taken, count, whole, chunk) if count else []
            number, counted, uncounted = len(taken), taken.counted, taken.uncounted
        # Before the records are processed: librdkafka prefetches in the meantime.
        if ended:
            consumer.fetch_ahead(following)
        if count:
            place.offset = int(offsets[count - 1]) + 1
            if not ended:
                consumer.hold_less(place, uncounted / number)
            yield from batches
            size = (counted + uncounted + 1) / number
            enough = min(
                int(max(BATCH, min(pace * BATCH, CACHED_BYTES / size))), 8 * enough, 1 + int(BATCH_BYTES / size)
            )
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


def _take(taken: MessageBatch, number: int, together: int = ROUND) -> None:
    """Take up to `number` messages, fewer at a pause, at the log's end, after an error, or if they are large.

    In rounds of `together`: librdkafka would wait for all `number` messages, and a chunk may have fewer records than
    offsets.
    """
    while len(taken) < number and taken.counted + taken.uncounted < BATCH_BYTES:
        if not taken.more(min(number - len(taken), together), PAUSE_SECONDS):
            break


def _batches(taken: MessageBatch, count: int, whole: bool, chunk: Chunk) -> list[pa.RecordBatch]:
    """Return the first `count` records. :raises IntegrityError: librdkafka gave records of another partition."""
    for topic, partition in taken.places(count):
        if (topic, partition) != chunk.name:
            raise IntegrityError(
                f"got a record of {topic}[{partition}] while reading {chunk}. Nothing of this chunk is stored; this is "
                "a fault of the reader, please report it."
            )
    return taken.batches(count, whole)


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


def _inside(
    offsets: Int64s, faults: Sequence[Fault], chunk: Chunk, brokers: str
) -> tuple[int, bool, KafkaError | None]:
    """Return how many records are the chunk's: those before its end; whether they reach the chunk's end, by a later
    record or the end of the log; and an error after which the consumer has to be assigned again: a damaged record
    batch, or missing offsets after the chunk.
    """
    [behind] = np.nonzero(offsets >= chunk.end)
    count = int(behind[0]) if len(behind) else len(offsets)
    for fault in faults:
        if fault.before > count or (fault.before and offsets[fault.before - 1] == chunk.end - 1):
            # The chunk is complete: whatever follows concerns later offsets.
            return min(fault.before, count), True, None
        error, code = fault.error, fault.error.code()
        if code in _NOTHING_BEFORE and fault.offset >= chunk.end:
            return fault.before, True, None
        if code == KafkaError._PARTITION_EOF:
            continue
        if code == KafkaError._BAD_MSG:
            return fault.before, False, error
        if code == KafkaError._AUTO_OFFSET_RESET:
            if fault.partition != chunk.partition:
                continue
            if fault.offset >= chunk.end:
                # Prefetched offsets after this chunk, or after the one before, are gone, and librdkafka has stopped.
                return fault.before, False, error
            raise TransientError(
                f"the leader of {chunk.name} does not have the start of {chunk}: retention overtook the run while it "
                "was reading, or this broker leads no more; the next attempt asks the others, reads what is left, "
                "and `policies.lost_offsets` decides about what is gone"
            )
        if code == KafkaError._BAD_COMPRESSION:
            # What comes before it is of no use: the chunk fails.
            offset = max(fault.offset, int(offsets[fault.before - 1]) + 1 if fault.before else chunk.start)
            raise NotUnpackedError(offset, translate(error, f"read {chunk}", brokers))
        if not error.retriable():
            raise _refused(error, chunk, brokers)
    return count, count < len(offsets) or bool(count and offsets[count - 1] == chunk.end - 1), None


def _refused(error: KafkaError, chunk: Chunk, brokers: str) -> ArchiverError:
    if error.code() in UNKNOWN:
        return TransientError(
            f"a broker at {brokers} does not know {chunk.name}, which was there when the run was planned; the next "
            "attempt asks others whether it is gone"
        )
    return translate(error, f"read {chunk}", brokers)

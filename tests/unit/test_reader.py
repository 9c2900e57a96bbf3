"""The native reader's batches of librdkafka's messages; with real brokers: tests/contract/test_reader.py."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.kafka import messages, reader
from kafka_archiver.messages.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.model.plan import Chunk

CHUNK = Chunk(topic="t", partition=1, generation=0, start=0, end=10)


def message(offset: int, error: int | None = None, partition: int = 1, topic: str = "t") -> Message:
    kafka_error = KafkaError(error) if error is not None else None
    return Message(topic=topic, partition=partition, offset=offset, value=b"x", error=kafka_error)


def inside(some: list[Message]) -> tuple[int, bool, KafkaError | None]:
    """Return how many records of these messages are the chunk's, whether they are all, and an error to read after."""
    taken = messages.Messages(lambda number, timeout: some)
    taken.more(len(some), 0)
    return reader._inside(taken.offsets, taken.faults, CHUNK, "brokers")


def test_what_is_gone_of_another_chunk_is_no_matter() -> None:
    """Retention may pass what was read ahead of the chunk before: its error outlives the next assignment."""
    record, gone = message(3), message(5, KafkaError._AUTO_OFFSET_RESET, partition=0)
    assert inside([gone, record]) == (1, False, None)


@pytest.mark.parametrize("offset", [10, 11])
def test_what_is_gone_behind_the_chunk_is_asked_for_again_for_librdkafka_has_stopped(offset: int) -> None:
    record, gone = message(3), message(offset, KafkaError._AUTO_OFFSET_RESET)
    count, ended, why = inside([record, gone])
    assert (count, ended) == (1, False)
    assert why is not None
    assert why.code() == KafkaError._AUTO_OFFSET_RESET


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError._AUTO_OFFSET_RESET, KafkaError._BAD_COMPRESSION])
def test_what_is_wrong_behind_the_last_record_does_not_matter(code: int) -> None:
    records = [message(3), message(9)]
    assert inside([*records, message(10, code)]) == (2, True, None)


def test_a_set_behind_the_chunk_that_cannot_be_unpacked_ends_it() -> None:
    record = message(3)
    broken = message(10, KafkaError._BAD_COMPRESSION)
    assert inside([record, broken]) == (1, True, None)
    with pytest.raises(PermanentError, match="cannot be decompressed"):
        inside([record, message(9, KafkaError._BAD_COMPRESSION)])


@given(st.sets(st.integers(0, 14), min_size=1), st.booleans())
def test_the_records_of_a_chunk_are_those_before_its_end_and_a_later_one_ends_it(offsets: set[int], eof: bool) -> None:
    records = [message(offset) for offset in sorted(offsets)]
    end = [message(max(offsets) + 1, KafkaError._PARTITION_EOF)] if eof else []
    count = sum(record.offset() < CHUNK.end for record in records)
    has_ended = max(offsets) >= CHUNK.end - 1
    assert inside([*records, *end]) == (count, has_ended, None)


class Burst:
    """A consumer that has all that it is asked for, in records of a MiB each."""

    def __init__(self, large: str) -> None:
        megabyte = b"x" * (1 << 20)
        headers = [("k", megabyte[: 1 << 19]), ("none", None), ("k", megabyte[: 1 << 19])]
        self.fields = {"headers": headers} if large == "headers" else {large: megabyte}

    def consume(self, number: int, timeout: float) -> list[Message]:
        return [Message(**self.fields) for _ in range(min(number, 5))]


@pytest.mark.parametrize("sample", [1, 4])
@pytest.mark.parametrize("large", ["value", "key", "headers"])
def test_large_records_behind_small_ones_make_no_large_batch(large: str, sample: int) -> None:
    """The number of records to ask for is guessed from the size of those before."""
    taken = messages.Messages(Burst(large).consume, sample)
    reader._take(taken, 2000)
    assert 20 <= len(taken) <= 35
    # librdkafka itself holds back for large values alone.
    assert (taken.counted if large == "value" else taken.uncounted) >= reader.BATCH_BYTES


def test_so_many_records_at_a_time_as_are_looked_at_soon() -> None:
    asked: list[int] = []

    def endless(number: int, timeout: float) -> list[Message]:
        asked.append(number)
        return [Message(value=b"x")] * number

    taken = messages.Messages(endless)
    reader._take(taken, 2 * reader.ROUND + 1)
    assert len(taken) == 2 * reader.ROUND + 1
    assert asked == [reader.ROUND, reader.ROUND, 1]


def test_a_record_without_a_time_has_the_time_that_kafka_says() -> None:
    """librdkafka says 0, which is an hour of 1970."""
    times = [(TIMESTAMP_NOT_AVAILABLE, 0), (TIMESTAMP_CREATE_TIME, 0), (TIMESTAMP_CREATE_TIME, 5)]
    some = [Message(offset=n, value=b"v", timestamp=time) for n, time in enumerate(times)]
    for batch in (messages.value_batch(some), messages.record_batch(some)):
        assert batch.column("timestamp").to_pylist() == [-1, 0, 5]


class Odd(Message):  # type: ignore[misc]
    """A message as confluent_kafka gives it where a header's key is not UTF-8."""

    def headers(self) -> None:
        raise SystemError("<method 'headers'> returned a result with an exception set")


@pytest.mark.parametrize(("time", "other"), [(5, True), (-2_177_452_800_001, False), (2**62, False)])
def test_a_header_without_a_readable_key_is_no_reason_to_fail_and_is_said_of_its_record(
    monkeypatch: pytest.MonkeyPatch, time: int, other: bool
) -> None:
    class Known:
        def __getattr__(self, name: str) -> object:
            return getattr(Message, name)

        def headers(self, message: Message) -> object:
            return message.headers()

    monkeypatch.setattr(messages, "Message", Known())
    fields = {"value": b"v", "key": b"k", "timestamp": (TIMESTAMP_CREATE_TIME, time)}
    some = [Message(offset=n, headers=[("h", b"1")], **fields) for n in range(3)]
    some[1:1] = [Odd(offset=7, **fields), Odd(offset=8, **fields)]
    assert messages.held_bytes(some) == (5, 5 + 3 * 2)
    batch = messages.record_batch(some)
    rows = batch.to_pylist()
    assert [row["offset"] for row in rows] == [0, 7, 8, 1, 2]
    assert [row["headers"] for row in rows] == [[{"key": "h", "value": b"1"}], [], [], *[rows[0]["headers"]] * 2]
    assert {row["key"] for row in rows} == {b"k"}
    why = "a header has a key that is not UTF-8, which the native reader cannot read"
    # The other reader is no way out where it cannot read the time.
    why += "; `source.reader: spark` stores it, with U+FFFD for the invalid bytes" * other
    mark = {"column": "headers", "reason": why}
    assert [row["unread"] for row in rows] == [None, mark, mark, None, None]
    assert "unread" not in messages.record_batch(some[3:]).schema.names
    assert "unread" not in messages.value_batch(some).schema.names


def test_what_is_gone_of_the_chunk_itself_is_an_error() -> None:
    with pytest.raises(TransientError, match="does not have the start of"):
        inside([message(3), message(4, KafkaError._AUTO_OFFSET_RESET)])


@pytest.mark.parametrize(("partition", "topic"), [(0, "t"), (1, "u")])
def test_a_record_of_another_partition_is_never_taken(partition: int, topic: str) -> None:
    stranger = message(5, partition=partition, topic=topic)

    def batches(*some: Message) -> list[object]:
        taken = messages.Messages(lambda number, timeout: list(some))
        taken.more(2, 0)
        return reader._batches(taken, 2, False, CHUNK)

    for some in ((stranger, message(6)), (message(4), stranger)):
        with pytest.raises(IntegrityError, match="got a record of"):
            batches(*some)
    assert batches(message(4), message(5))


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION])
def test_a_topic_that_the_broker_does_not_know_is_asked_for_again(code: int) -> None:
    with pytest.raises(TransientError, match=r"does not know t\[1\], .* asks others"):
        inside([message(3), message(4, code)])

"""What the native reader makes of librdkafka's messages; with real brokers: tests/contract/test_reader.py."""

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from kafka_archiver.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.kafka import messages, reader
from kafka_archiver.plan import Chunk

CHUNK = Chunk(topic="t", partition=1, generation=0, start=0, end=10)


def message(offset: int, error: int | None = None, partition: int = 1, topic: str = "t") -> Message:
    said = KafkaError(error) if error is not None else None
    return Message(topic=topic, partition=partition, offset=offset, value=b"x", error=said)


def test_what_is_gone_of_another_chunk_is_no_matter() -> None:
    """As when retention passes what was read ahead of the chunk before: its error outlives the next assignment."""
    record, gone = message(3), message(5, KafkaError._AUTO_OFFSET_RESET, partition=0)
    assert reader._inside([gone, record], CHUNK, "brokers") == ([record], False, None)


@pytest.mark.parametrize("offset", [10, 11])
def test_what_is_gone_behind_the_chunk_is_asked_for_again_for_librdkafka_has_stopped(offset: int) -> None:
    record, gone = message(3), message(offset, KafkaError._AUTO_OFFSET_RESET)
    wanted, ended, why = reader._inside([record, gone], CHUNK, "brokers")
    assert (wanted, ended) == ([record], False)
    assert why is not None
    assert why.code() == KafkaError._AUTO_OFFSET_RESET


@pytest.mark.parametrize("code", [KafkaError._BAD_MSG, KafkaError._AUTO_OFFSET_RESET, KafkaError._BAD_COMPRESSION])
def test_what_is_wrong_behind_the_last_record_does_not_matter(code: int) -> None:
    records = [message(3), message(9)]
    assert reader._inside([*records, message(10, code)], CHUNK, "brokers") == (records, True, None)


def test_a_set_behind_the_chunk_that_cannot_be_unpacked_ends_it() -> None:
    record = message(3)
    broken = message(10, KafkaError._BAD_COMPRESSION)
    assert reader._inside([record, broken], CHUNK, "brokers") == ([record], True, None)
    with pytest.raises(PermanentError, match="cannot be unpacked"):
        reader._inside([record, message(9, KafkaError._BAD_COMPRESSION)], CHUNK, "brokers")


class Burst:
    """A consumer that has all that it is asked for, in records of a MiB each."""

    value = b"x" * (1 << 20)

    def consume(self, number: int, timeout: float) -> list[Message]:
        return [Message(value=self.value) for _ in range(min(number, 5))]


def test_large_records_behind_small_ones_make_no_large_batch() -> None:
    """How many are asked for is guessed from the size of those before."""
    assert len(reader._take(Burst(), 2000)) == 35


def test_a_record_without_a_time_has_the_time_that_kafka_says() -> None:
    """librdkafka says 0, which is an hour of 1970."""
    times = [(TIMESTAMP_NOT_AVAILABLE, 0), (TIMESTAMP_CREATE_TIME, 0), (TIMESTAMP_CREATE_TIME, 5)]
    some = [Message(offset=n, value=b"v", timestamp=time) for n, time in enumerate(times)]
    for batch in (messages.value_batch(some), messages.record_batch(some)):
        assert batch.column("timestamp").to_pylist() == [-1, 0, 5]


class Odd(Message):  # type: ignore[misc]
    """What confluent_kafka does with a header whose key is not UTF-8."""

    def headers(self) -> None:
        raise SystemError("<method 'headers'> returned a result with an exception set")


def test_a_header_without_a_readable_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Known:
        def __getattr__(self, name: str) -> object:
            return getattr(Message, name)

        def headers(self, message: Message) -> object:
            return message.headers()

    monkeypatch.setattr(messages, "Message", Known())
    some = [Message(topic="t", partition=1, offset=n, value=b"v") for n in range(3)]
    some.insert(2, Odd(topic="t", partition=1, offset=7, value=b"v"))
    with pytest.raises(PermanentError, match=r"t\[1\] offset 7 has a header whose key is not UTF-8"):
        messages.record_batch(some)


def test_what_is_gone_of_the_chunk_itself_is_an_error() -> None:
    with pytest.raises(TransientError, match="does not have the start of"):
        reader._inside([message(3), message(4, KafkaError._AUTO_OFFSET_RESET)], CHUNK, "brokers")


@pytest.mark.parametrize(("partition", "topic"), [(0, "t"), (1, "u")])
def test_a_record_of_another_partition_is_never_taken(partition: int, topic: str) -> None:
    stranger = message(5, partition=partition, topic=topic)
    for some in ([stranger, message(6)], [message(4), stranger]):
        with pytest.raises(IntegrityError, match="came while reading"):
            reader._require_place(some, CHUNK)
    reader._require_place([message(4), message(5)], CHUNK)

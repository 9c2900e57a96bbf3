"""What the native reader makes of librdkafka's messages; with real brokers: tests/contract/test_reader.py."""

import pytest
from confluent_kafka import KafkaError, Message

from kafka_archiver.errors import IntegrityError, TransientError
from kafka_archiver.kafka import reader
from kafka_archiver.plan import Chunk

CHUNK = Chunk(topic="t", partition=1, generation=0, start=0, end=10)


def message(offset: int, error: int | None = None, partition: int = 1, topic: str = "t") -> Message:
    said = KafkaError(error) if error is not None else None
    return Message(topic=topic, partition=partition, offset=offset, value=b"x", error=said)


@pytest.mark.parametrize(("partition", "offset"), [(0, 5), (1, 10), (1, 11)])
def test_what_was_fetched_behind_a_chunk_may_be_gone(partition: int, offset: int) -> None:
    """As when retention passes what was read ahead: nobody asked for it, and its error outlives the next assignment."""
    record, gone = message(3), message(offset, KafkaError._AUTO_OFFSET_RESET, partition)
    assert reader._inside([gone, record], CHUNK, "brokers") == ([record], False, None)


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

"""The twin's transactional writers do what librdkafka's do on a real broker, after the same calls."""

import random
import time
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kafka_archiver.kafka import transactional
from kafka_archiver.kafka.target import KafkaTarget
from kafka_archiver.messages.errors import ArchiverError, FencedError, PermanentError, UncertainError
from kafka_archiver.model.settings import Isolation
from kafka_archiver.records.formats.shared.records import COLUMNS
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.restore.target import Target, Writer
from scripts.stack.kafka import Kafka
from tests.support.kafka_twin import KafkaTwin
from tests.support.restore_twin import TwinTarget
from tests.support.topics import DAY, Record, delete_records, new_topic, produce, produce_raw
from tests.support.waiting import until

pytestmark = pytest.mark.contract


class World:
    """A target with an empty topic of one partition."""

    def __init__(self, target: Target, topic: str) -> None:
        self.target, self.name = target, TopicPartition(topic, 0)
        self.group, self.transactional_id = uuid.uuid4().hex, uuid.uuid4().hex

    def writer(self) -> Writer:
        return self.target.writer(self.transactional_id, self.name)

    def read(self, isolation: Isolation = "read_committed") -> list[tuple[int, bytes]]:
        until(lambda: len({*self.target.ends(self.name)}) == 1)
        end = self.target.ends(self.name)[1]
        batches = self.target.read(self.name, Range(0, end), isolation)
        return [(row["offset"], row["value"]) for batch in batches for row in batch.to_pylist()]


@pytest.fixture(params=["twin", "kafka", "kafka, with an object a record"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    if request.param == "twin":
        return twin_world()
    if request.param != "kafka":
        monkeypatch.setattr(transactional, "library", lambda: None)
    return real_world(request.getfixturevalue("kafka"))


def twin_world() -> World:
    twin = KafkaTwin(lambda: 0)
    twin.create_topic("t")
    return World(TwinTarget(twin), "t")


def real_world(kafka: Kafka) -> World:
    target = KafkaTarget({"bootstrap.servers": kafka.bootstrap_servers}, patience=20)
    return World(target, new_topic(kafka.bootstrap_servers))


def batch(*values: bytes, **more: Any) -> pa.RecordBatch:
    row = {"offset": 0, "timestamp": DAY, "timestamp_type": 0, "key": None, "headers": []}
    return pa.RecordBatch.from_pylist([{**row, "value": value, **more} for value in values], schema=COLUMNS)


def test_records_and_progress_are_there_together(world: World) -> None:
    writer = world.writer()
    assert world.target.progress(world.group, world.name) is None
    writer.send(batch(b"0", b"1"))
    writer.send(batch(b"2"))
    assert writer.commit(world.group, "one") == Range(0, 3)
    writer.send(batch(b"3"))
    # Behind the first transaction is its marker.
    assert writer.commit(world.group, "two") == Range(4, 5)
    writer.close()
    world.writer().close()
    assert world.read() == [(0, b"0"), (1, b"1"), (2, b"2"), (4, b"3")]
    position = world.target.progress(world.group, world.name)
    assert position is not None
    assert (position.offset, position.stamp) == (5, "two")


def test_a_later_writer_ends_the_earlier_and_what_it_had_begun(world: World) -> None:
    first = world.writer()
    first.send(batch(b"begun"))
    second = world.writer()
    # What had reached the broker is aborted.
    assert world.read() == []
    with pytest.raises(FencedError):
        first.commit(world.group, "first")
    with pytest.raises(ArchiverError):
        first.send(batch(b"again"))
    second.send(batch(b"mine"))
    second.commit(world.group, "second")
    third = world.writer()
    third.close()
    assert [value for _, value in world.read()] == [b"mine"]
    assert world.target.progress(world.group, world.name).stamp == "second"  # type: ignore[union-attr]
    first.close()
    second.close()


def test_what_was_not_committed_is_aborted_when_the_writer_closes(world: World) -> None:
    writer = world.writer()
    writer.send(batch(b"0"))
    writer.close()
    world.writer().close()
    assert world.read() == []
    assert world.target.progress(world.group, world.name) is None


def test_records_of_aborted_transactions_are_counted_and_markers_are_not(world: World) -> None:
    writer = world.writer()
    writer.send(batch(b"0", b"1"))
    writer.commit(world.group, "one")
    writer.send(batch(b"aborted"))
    # The record has reached the broker.
    until(lambda: world.target.ends(world.name)[1] > 3)
    writer.close()
    world.writer().close()
    until(lambda: world.target.ends(world.name) == (5, 5))
    marker, aborted, end = Range(2, 3), Range(3, 4), Range(4, 5)
    assert world.target.count(world.name, []) == 0
    assert world.target.count(world.name, [marker, end]) == 0
    assert world.target.count(world.name, [Range(2, 5)]) == 1
    assert world.target.count(world.name, [Range(0, 2), aborted]) == 3


@pytest.mark.parametrize("seed", range(3))
def test_the_same_calls_have_the_same_end(kafka: Kafka, seed: int) -> None:
    ends = [played(make(), random.Random(seed)) for make in (twin_world, lambda: real_world(kafka))]
    assert ends[0] == ends[1]


def played(world: World, draw: random.Random) -> tuple[list[str], list[bytes], str]:
    """Do calls of several writers; what each did, what is there, and the progress."""
    writers: list[Writer] = [world.writer()]
    # What each has sent since its last commit.
    begun: dict[int, int] = {}
    log: list[str] = []
    for step in range(14):
        which = draw.randrange(len(writers))
        action = draw.choice(["send", "send", "commit", "new"])
        call: Callable[[], object]
        if action == "new":
            writers.append(world.writer())
            log.append("new")
            continue
        if action == "send":
            call = lambda: writers[which].send(batch(b"%d" % step))  # noqa: B023, E731 - called at once
        elif begun.get(which):
            call = lambda: writers[which].commit(world.group, str(step))  # noqa: B023, E731
        else:
            continue
        try:
            call()
        except (FencedError, UncertainError):
            # librdkafka may take a record of a writer that is fenced, and say so at the commit.
            begun[which] = 0
        else:
            begun[which] = begun.get(which, 0) + 1 if action == "send" else 0
            log += [f"{action} {which}"] if action == "commit" else []
    for writer in writers:
        writer.close()
    world.writer().close()
    position = world.target.progress(world.group, world.name)
    return log, [value for _, value in world.read()], position.stamp if position else ""


@pytest.mark.parametrize("has_binary", [True, False], ids=["drain.c", "an object a record"])
def test_a_record_that_the_broker_refuses_is_the_reason_wherever_in_a_transaction_it_is(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, has_binary: bool
) -> None:
    if not has_binary:
        monkeypatch.setattr(transactional, "library", lambda: None)
    # The settings of a topic, what its records have, what makes one of them another, how many are around it.
    size, times, compact = "max_message_bytes", "message_timestamp_before_max_ms", "cleanup_policy"
    keyed, aged = {"key": b"k"}, str(10 * 365 * 86_400_000)
    cases: list[tuple[dict[str, str], dict[str, Any], dict[str, Any], int, str]] = [
        ({size: "2000"}, {}, {"value": random.Random(0).randbytes(3000)}, 1, r"max.message.bytes; raise it"),
        ({times: aged}, {}, {"timestamp": 1}, 1, r"message.timestamp.before.max.ms or after.max.ms; raise them"),
        ({times: aged}, {}, {"timestamp": 1}, 4000, r"message.timestamp.before.max.ms or after.max.ms; raise them"),
        ({compact: "compact"}, keyed, {"key": None}, 4000, r"without a key: set `cleanup.policy=delete`"),
    ]
    for settings, usual, odd, count, remedy in cases:
        target = KafkaTarget({"bootstrap.servers": kafka.bootstrap_servers}, patience=20)
        world = World(target, new_topic(kafka.bootstrap_servers, **settings))
        # Many are several batches, on their way at once.
        around = batch(*[random.Random(1).randbytes(1000)] * count, **usual)
        pieces = [*pieces_of(around), batch(b"x", **{**usual, **odd}), *pieces_of(around)]
        writer = world.writer()
        with pytest.raises(PermanentError, match=remedy):
            (*map(writer.send, pieces), writer.commit(world.group, "s"))
        writer.close()
        assert world.read() == []
        assert target.progress(world.group, world.name) is None


def pieces_of(records: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [records.slice(start, 500) for start in range(0, records.num_rows, 500)]


def test_small_records_fit_a_topic_of_small_batches(kafka: Kafka) -> None:
    brokers = kafka.bootstrap_servers
    name = TopicPartition(new_topic(brokers, max_message_bytes="2000"), 0)
    writer = KafkaTarget({"bootstrap.servers": brokers}).writer(uuid.uuid4().hex, name)
    writer.send(batch(*(random.Random(n).randbytes(1000) for n in range(20))))
    assert writer.commit(uuid.uuid4().hex, "s").size == 20
    writer.close()


def test_a_header_that_is_not_utf_8_is_not_of_a_restore(kafka: Kafka) -> None:
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers)
    produce_raw(brokers, topic, 0, int(time.time() * 1000), b"v", [(b"\xff", b"1")])
    target = KafkaTarget({"bootstrap.servers": brokers}, patience=20)
    with pytest.raises(PermanentError, match="not UTF-8"):
        list(target.read(TopicPartition(topic, 0), Range(0, 1), "read_committed"))


def test_a_target_whose_records_were_removed_is_named_and_not_asked_again(kafka: Kafka) -> None:
    world = real_world(kafka)
    produce(kafka.bootstrap_servers, world.name.topic, [Record(0, DAY, b"%d" % n) for n in range(5)])
    delete_records(kafka.bootstrap_servers, world.name.topic, 2)
    with pytest.raises(PermanentError, match=r"begins at offset 2, and the restore's records begin at 0: retention"):
        list(world.target.read(world.name, Range(0, 5), "read_committed"))

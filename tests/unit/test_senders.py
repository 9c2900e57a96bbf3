"""drain.c's sender beside the one that makes an object of each record: one sends what the other sends."""

from ctypes import POINTER, Structure, addressof, byref, c_void_p, cast, string_at
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from kafka_archiver.kafka import sending, transactional
from kafka_archiver.kafka.drain import library as native
from kafka_archiver.kafka.drain.library import Answers, Position
from kafka_archiver.kafka.drain.sender import DrainSender
from kafka_archiver.kafka.sending import DROPPED, Answer, ObjectSender
from kafka_archiver.kafka.transactional import OnItsWay, TransactionalWriter
from kafka_archiver.messages.errors import ConfigError, FencedError, PermanentError, UncertainError
from kafka_archiver.records.formats.shared.records import COLUMNS
from kafka_archiver.values.ranges import TopicPartition
from tests.support.fake_librdkafka import Laid
from tests.support.fake_producer import QUEUE_FULL, FakeConfluentProducer, FakeProducer, Sent

needs_binary = pytest.mark.skipif(native.library() is None, reason=native.why_not())
NAME = TopicPartition("t", 3)
BYTES = st.none() | st.binary(max_size=20) | st.binary(min_size=2000, max_size=2000)
REFUSED = [KafkaError.INVALID_TIMESTAMP, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._MSG_TIMED_OUT]
TIMES = st.integers(-1, 2**62)
HEADER = st.fixed_dictionaries({"key": st.text(st.characters(codec="utf-8", exclude_characters="\0")), "value": BYTES})
ROW = st.fixed_dictionaries(
    {"timestamp": TIMES, "key": BYTES, "value": BYTES, "headers": st.lists(HEADER, max_size=3)},
)


class FakeSender:
    """A sender that does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{"offset": n, "timestamp_type": 0, **row} for n, row in enumerate(rows)], COLUMNS
    )


def drained(fake: FakeProducer) -> DrainSender:
    sender = object.__new__(DrainSender)
    sender._library, sender._kafka, sender._name = fake.library, fake.library.kafka, NAME
    sender._answers, sender._sent, sender._producer, sender._topic = Answers(), 0, 1, 17
    return sender


def objects_of(confluent: FakeConfluentProducer) -> ObjectSender:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending.confluent_kafka, "Producer", lambda _: confluent)
        return ObjectSender({}, print, NAME, "")


@needs_binary
@given(st.lists(ROW, max_size=12), st.lists(st.sampled_from([0, 0, QUEUE_FULL]), max_size=20), st.data())
def test_both_send_the_same_of_odd_records(
    rows: list[dict[str, Any]], refusals: list[int], data: st.DataObject
) -> None:
    batch = batch_of(rows)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
    pieces = [batch.slice(0, start), batch.slice(start, end - start), batch.slice(end)]
    fake = FakeProducer(chain(refusals, repeat(0)))
    confluent = FakeConfluentProducer(chain(refusals, repeat(0)))
    objects, sender = objects_of(confluent), drained(fake)
    for piece in pieces:
        objects.send(piece)
        sender.send(piece)
    expected = [
        Sent(3, row["value"], row["key"], row["timestamp"], [(h["key"].encode(), h["value"]) for h in row["headers"]])
        for row in rows
    ]
    assert fake.sent == confluent.sent == expected
    assert fake.numbers == list(range(1, len(rows) + 1))
    assert sender.waiting() == objects.waiting() == len(rows)
    # What librdkafka did not take over is given back.
    assert not fake.headers
    assert not fake.errors


@needs_binary
def test_an_error_of_librdkafka_is_raised_and_given_back() -> None:
    fake = FakeProducer(iter([0, KafkaError.MSG_SIZE_TOO_LARGE]))
    rows = [{"timestamp": 1, "key": None, "value": b"1", "headers": [{"key": "h", "value": b""}]}] * 3
    with pytest.raises(KafkaException) as raised:
        drained(fake).send(batch_of(rows))
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert len(fake.sent) == 1
    assert not fake.headers
    assert not fake.errors


@needs_binary
@given(st.lists(st.tuples(st.sampled_from([0, 0, 0, *REFUSED, *DROPPED]), st.integers(-1, 50)), max_size=9), st.data())
def test_both_say_where_the_first_and_the_last_record_are_or_the_first_refusal_whatever_was_dropped_before(
    answers: list[tuple[int, int]], data: st.DataObject
) -> None:
    real, count = native.library(), len(answers)
    assert real is not None
    sender, objects = drained(FakeProducer(repeat(0))), objects_of(FakeConfluentProducer(repeat(0)))
    sender._sent = objects._sent = count
    numbered = list(enumerate(answers, 1))
    if any(error for error, _ in answers):
        numbered = data.draw(st.permutations(numbered))
    for number, (error, offset) in numbered:
        record: Structure = Laid(error, 17, 3, None, 0, None, 0, offset, number)
        real.drain.answer(1, addressof(record), byref(sender._answers))
        answer = SimpleNamespace(offset=lambda at=offset: at if at >= 0 else None)
        objects._answers(KafkaError(error) if error else None, answer)
        count -= 1
        assert sender.waiting() == objects.waiting() == count
        assert sender.answer().error == objects.answer().error
    assert sender.answer() == objects.answer()
    errors = [error for _, (error, _) in numbered if error]
    offsets = [offset if offset >= 0 else None for _, offset in answers]
    if errors:
        reasons = [error for error in errors if error not in DROPPED]
        assert sender.answer() == Answer(error=KafkaError([*reasons, errors[-1]][0]))
    else:
        assert sender.answer() == (Answer(offsets[0], offsets[-1]) if offsets else Answer())


@needs_binary
def test_a_stamp_ends_with_nul_without_which_confluent_kafka_reads_on() -> None:
    real, sent = native.library(), []
    assert real is not None

    def send_offsets(producer: int, places: int, group: int, timeout: int) -> None:
        # `rd_kafka_topic_partition_list_t`: two ints, and the places.
        place = cast(c_void_p.from_address(places + 8).value, POINTER(Position))[0]
        sent.append((place.topic, place.partition, place.offset, string_at(place.metadata, place.metadata_size)))

    sender = drained(FakeProducer(repeat(0)))
    sender._kafka = SimpleNamespace(**vars(real.kafka) | {"send_offsets_to_transaction": send_offsets})
    sender.send_offset("g", 7, "stämp", 1)
    assert sent == [(b"t", 3, 7, "stämp".encode() + b"\0")]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=10), st.data())
def test_what_is_on_its_way_is_the_pieces_without_all_answers(
    pieces: list[tuple[int, int]], data: st.DataObject
) -> None:
    on_its_way, answered = OnItsWay(), 0
    for count, (rows, size) in enumerate(pieces, 1):
        on_its_way.add(rows, size)
        sent = sum(rows for rows, _ in pieces[:count])
        answered = data.draw(st.integers(answered, sent))
        ends = [sum(rows for rows, _ in pieces[: n + 1]) for n in range(count)]
        expected = sum(size for (_, size), end in zip(pieces, ends, strict=False) if end > answered)
        assert on_its_way.size(sent - answered) == expected


def test_a_connection_that_leaves_too_little_time_for_a_transaction_is_refused_before_anything_is_sent() -> None:
    properties = {"bootstrap.servers": "nobody:9", "transaction.timeout.ms": "29999"}
    with pytest.raises(ConfigError, match=r"`transaction.timeout.ms: 29999`: the brokers would abort.*give 30000"):
        TransactionalWriter(properties, "id", NAME)


@pytest.mark.parametrize("call", ["send", "commit"])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (KafkaError.INVALID_TIMESTAMP, "its timestamp is out of the topic's message.timestamp.before.max.ms"),
        (KafkaError._INVALID_DIFFERENT_RECORD, "the broker refuses it, or another record of its batch"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "grant them Write on the topic"),
    ],
)
def test_the_client_is_asked_for_the_reason_of_what_fails_behind_a_refused_record(
    monkeypatch: pytest.MonkeyPatch, call: str, code: int, words: str
) -> None:
    class Refused(FakeSender):
        has_begun, flushes = False, 0

        def begin(self) -> None:
            if self.has_begun:
                raise KafkaException(KafkaError(code))
            self.has_begun = True

        def send(self, batch: pa.RecordBatch) -> None:
            if call == "send":
                raise KafkaException(KafkaError(KafkaError._STATE))

        def flush(self, seconds: float) -> int:
            # A record behind the refused one may never get an answer.
            self.flushes += 1
            return 1

        def poll(self, seconds: float) -> None:
            raise AssertionError("waits for what may never come")

        def answer(self) -> Answer:
            return Answer(error=KafkaError(KafkaError._PURGE_QUEUE))

    sender = Refused()
    monkeypatch.setattr(transactional, "MOST_ON_ITS_WAY", -1)
    monkeypatch.setattr(TransactionalWriter, "_new", lambda *_: sender)
    writer = TransactionalWriter({"bootstrap.servers": "nobody:9"}, "id", NAME)
    batch = batch_of([{"timestamp": 1, "key": None, "value": None, "headers": []}])
    with pytest.raises(PermanentError, match=words):
        (writer.send(batch), writer.commit("g", "s"))
    assert sender.flushes <= 1


@pytest.mark.parametrize("call", ["send", "flush", "send_offset"])
def test_a_fatal_error_that_the_client_has_lost_is_asked_for(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    class Fenced(FakeSender):
        has_begun = False

        def __getattr__(self, name: str) -> Any:
            return self.lose if name == call else super().__getattr__(name)

        def lose(self, *_: object) -> None:
            raise SystemError("<method 'flush'> returned NULL without setting an exception")

        def begin(self) -> None:
            if self.has_begun:
                raise KafkaException(KafkaError(KafkaError._FENCED))
            self.has_begun = True

        def answer(self) -> Answer:
            return Answer(0, 0)

    monkeypatch.setattr(TransactionalWriter, "_new", lambda *_: Fenced())
    writer = TransactionalWriter({"bootstrap.servers": "nobody:9"}, "id", NAME)
    batch = batch_of([{"timestamp": 1, "key": None, "value": None, "headers": []}])
    with pytest.raises(FencedError, match="another attempt writes"):
        (writer.send(batch), writer.commit("g", "s"))


@pytest.mark.parametrize("name", ["queue.buffering.max.kbytes", "queue.buffering.max.messages", "message.max.bytes"])
def test_a_small_queue_of_a_connection_is_none_of_a_restore(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A record that is larger waited for room for ever."""
    configs: list[dict[str, Any]] = []
    monkeypatch.setattr(TransactionalWriter, "_new", lambda _, config: configs.append(config) or FakeSender())
    TransactionalWriter({"bootstrap.servers": "nobody:9", name: "1000", "linger.ms": "1"}, "id", NAME)
    assert configs[0]["linger.ms"] == "1"
    assert configs[0][name] > 1_000_000


def test_credentials_that_were_refused_before_a_commit_are_no_reason_of_a_later_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(FakeSender):
        is_silent = False

        def flush(self, seconds: float) -> int:
            if self.is_silent:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            return 0

        def answer(self) -> Answer:
            return Answer(0, 0)

    sender = Silent()
    monkeypatch.setattr(TransactionalWriter, "_new", lambda *_: sender)
    writer = TransactionalWriter({"bootstrap.servers": "nobody:9"}, "id", NAME)
    batch = batch_of([{"timestamp": 1, "key": None, "value": None, "headers": []}])
    writer._complaints(KafkaError(KafkaError._AUTHENTICATION))
    (writer.send(batch), writer.commit("g", "s"))
    sender.is_silent = True
    writer.send(batch)
    with pytest.raises(UncertainError):
        writer.commit("g", "s")

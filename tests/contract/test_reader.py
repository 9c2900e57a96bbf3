"""The native reader on a real broker: where it stops, and what it does when it cannot start."""

import hashlib
import os
import random
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_archiver.kafka import consumer, reader
from kafka_archiver.kafka.drain.client import DrainConsumer
from kafka_archiver.kafka.drain.library import library, why_not
from kafka_archiver.kafka.reader import read_chunk, read_chunks
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.records import vectors
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from tests.support.topics import DAY, Record, delete_records, new_topic, produce, produce_raw
from tests.support.waiting import until

pytestmark = pytest.mark.contract


# Where librdkafka's errors and ends decide: each also without a Python object a record, and with.
READERS = pytest.mark.parametrize("how", ["drain", "python"])


def use(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read in C, or in Python."""
    if how == "drain" and library() is None:
        pytest.skip(why_not())
    if how == "python":
        monkeypatch.setattr(consumer, "library", lambda: None)


def offsets(kafka: Kafka, topic: str, start: int, end: int, **chosen: str) -> list[int]:
    chunk = Chunk(topic=topic, partition=0, generation=0, start=start, end=end)
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    batches = read_chunk(properties, "g", chunk, Settings.model_validate(chosen), patience=20)
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_it_reads_exactly_the_chunk(kafka: Kafka) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"x")] * 5000)
    for start, end in ((0, 5000), (0, 1), (10, 4000), (4999, 5000)):
        assert offsets(kafka, topic, start, end) == list(range(start, end))


@dataclass(repr=False)
class Mixed:
    """A topic with plain, committed and aborted records in its three partitions, and those that are to be read."""

    topic: str
    ends: list[int]
    records: list[dict[int, bytes]]

    def chunk(self, partition: int, start: int, end: int) -> Chunk:
        return Chunk(topic=self.topic, partition=partition, generation=0, start=start, end=end)


@pytest.fixture(scope="module")
def mixed(kafka: Kafka) -> Mixed:
    brokers = kafka.bootstrap_servers
    counts = [50, 350, 650]
    # A transaction's marker takes an offset too.
    mixed_topic = Mixed(new_topic(brokers, 3), [6 * count + 4 for count in counts], [])
    for turn in range(6):
        records = [Record(p, DAY, b"%d-%d-%d" % (turn, p, n)) for p, count in enumerate(counts) for n in range(count)]
        produce(brokers, mixed_topic.topic, records, [None, "commit", "abort"][turn % 3])
    for partition, end in enumerate(mixed_topic.ends):
        batches = read_chunk({"bootstrap.servers": brokers}, "g", mixed_topic.chunk(partition, 0, end), Settings())
        mixed_topic.records.append({row["offset"]: row["value"] for batch in batches for row in batch.to_pylist()})
    assert [len(some) for some in mixed_topic.records] == [4 * count for count in counts]
    return mixed_topic


@given(data=st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_consumer_reads_chunks_in_any_order_and_gives_each_its_own(
    kafka: Kafka, mixed: Mixed, data: st.DataObject
) -> None:
    """Most chunks are near the end of a log: that end is known while the next chunk begins, and must not end it."""
    chunks = []
    for partition in data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12), label="partitions"):
        start = data.draw(st.integers(0, mixed.ends[partition] - 1))
        chunks.append(mixed.chunk(partition, start, data.draw(st.integers(start + 1, mixed.ends[partition]))))
    chunks_read = []
    for chunk, batches in read_chunks({"bootstrap.servers": kafka.bootstrap_servers}, "g", chunks, Settings(), 20):
        rows = [row for batch in batches for row in batch.to_pylist()]
        expected = {o: value for o, value in mixed.records[chunk.partition].items() if chunk.start <= o < chunk.end}
        assert {row["offset"]: row["value"] for row in rows} == expected
        assert len(rows) == len(expected)
        chunks_read.append(chunk)
    assert chunks_read == chunks


def test_the_next_chunk_is_fetched_while_the_records_of_one_are_processed(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    use("drain", monkeypatch)
    topic = new_topic(kafka.bootstrap_servers, 3)
    produce(kafka.bootstrap_servers, topic, [Record(p, DAY, b"x") for p in range(3)] * 50)
    assigned: list[list[int]] = []
    assign = DrainConsumer.assign

    def note(consumer: DrainConsumer, places: list[confluent_kafka.TopicPartition]) -> None:
        assigned.append([place.partition for place in places])
        assign(consumer, places)

    monkeypatch.setattr(DrainConsumer, "assign", note)
    chunks = [Chunk(topic=topic, partition=p, generation=0, start=5, end=50) for p in range(3)]
    while_processed = []
    for _, batches in read_chunks({"bootstrap.servers": kafka.bootstrap_servers}, "g", chunks, Settings(), 20):
        while_processed.append([assigned[-1] for _ in batches][-1])
    assert while_processed == [[1], [2], []]
    assert assigned == [[0], [1], [2], []]


def test_a_connection_that_producers_of_large_records_share(kafka: Kafka) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"x")])
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=1)
    properties = {"bootstrap.servers": kafka.bootstrap_servers, "message.max.bytes": "900000000"}
    assert sum(batch.num_rows for batch in read_chunk(properties, "g", chunk, Settings())) == 1


@READERS
def test_properties_that_librdkafka_refuses_are_nobodys_to_try_again(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(how, monkeypatch)
    chunk = Chunk(topic="t", partition=0, generation=0, start=0, end=1)
    with pytest.raises(PermanentError, match=r"properties of the Kafka connection .*queued\.min\.messages"):
        list(read_chunk({"bootstrap.servers": "127.0.0.1:1", "queued.min.messages": "0"}, "g", chunk, Settings()))


def test_records_that_will_not_come_are_not_waited_for(kafka: Kafka, mixed: Mixed) -> None:
    # The last offset of each log is that of a transaction's marker.
    chunks = [mixed.chunk(p, start, mixed.ends[p]) for p in range(3) for start in (0, mixed.ends[p] // 2) * 2]
    began = time.monotonic()
    reads = read_chunks({"bootstrap.servers": kafka.bootstrap_servers}, "g", chunks, Settings(), 20)
    assert sum(batch.num_rows for _, batches in reads for batch in batches) == 2 * sum(
        len(some) + sum(offset >= mixed.ends[p] // 2 for offset in some) for p, some in enumerate(mixed.records)
    )
    # librdkafka's consumer waits for as many as it is asked for: a second for each chunk.
    assert time.monotonic() - began < len(chunks) - 2


def test_another_topic_is_not_waited_for(kafka: Kafka) -> None:
    topics = [new_topic(kafka.bootstrap_servers) for _ in range(12)]
    for topic in topics:
        produce(kafka.bootstrap_servers, topic, [Record(0, DAY, topic.encode())] * 20)
    chunks = [Chunk(topic=topic, partition=0, generation=0, start=0, end=20) for topic in topics]
    began = time.monotonic()
    reads = read_chunks({"bootstrap.servers": kafka.bootstrap_servers}, "g", chunks, Settings(), 20)
    values = [{v.as_py() for batch in batches for v in batch.column("value")} for _, batches in reads]
    assert values == [{topic.encode()} for topic in topics]
    # A consumer that is given one topic after the other takes a second for each.
    assert time.monotonic() - began < len(topics) - 2


@READERS
def test_it_stops_at_the_end_of_a_chunk_without_a_record_there(
    kafka: Kafka, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(how, monkeypatch)
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers)
    produce(brokers, topic, [Record(0, DAY, b"x")] * 3, "commit")
    produce(brokers, topic, [Record(0, DAY, b"no")] * 3, "abort")
    # 3 is the commit's marker, 4 to 6 were aborted, 7 is the abort's marker and the last offset.
    assert offsets(kafka, topic, 0, 8) == [0, 1, 2]
    assert offsets(kafka, topic, 3, 8) == []
    assert offsets(kafka, topic, 0, 8, isolation="read_uncommitted") == [0, 1, 2, 4, 5, 6]
    produce(brokers, topic, [Record(0, DAY, b"x")])
    assert offsets(kafka, topic, 3, 8) == []
    assert offsets(kafka, topic, 3, 9) == [8]


def test_an_open_transaction_behind_the_chunk_does_not_hold_it_up(kafka: Kafka) -> None:
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers)
    produce(brokers, topic, [Record(0, DAY, b"x")] * 3)
    producer = confluent_kafka.Producer({"bootstrap.servers": brokers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    assert offsets(kafka, topic, 0, 3) == [0, 1, 2]
    producer.abort_transaction(30)


@READERS
def test_a_start_that_is_gone_is_an_error_and_never_a_jump(
    kafka: Kafka, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(how, monkeypatch)
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"x")] * 10)
    delete_records(kafka.bootstrap_servers, topic, 5)
    with pytest.raises(TransientError, match="not have the start of"):
        offsets(kafka, topic, 0, 10)


@READERS
def test_brokers_that_are_gone_are_a_transient_error(kafka: Kafka, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(how, monkeypatch)
    chunk = Chunk(topic="t", partition=0, generation=0, start=0, end=1)
    began = time.monotonic()
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:1 within 2 s while reading t\[0\] \[0, 1\)"):
        list(read_chunk({"bootstrap.servers": "127.0.0.1:1"}, "g", chunk, Settings(), patience=2))
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("codec", ["none", "zstd", "gzip"])
def test_a_record_of_more_than_100_mb_is_read(kafka: Kafka, codec: str) -> None:
    # The largest that a topic can permit while the broker takes requests of 100 MiB, its default.
    brokers, value = kafka.bootstrap_servers, b"0123456789abcdef" * (104_000_000 // 16)
    topic = new_topic(brokers, max_message_bytes=str(100 << 20))
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": brokers, "message.max.bytes": 1_000_000_000, "compression.type": codec}
    )
    for each in (b"before", value, b"behind"):
        producer.produce(topic, each, partition=0)
    assert producer.flush(60) == 0
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=3)
    # What a connection says about it would only be an endless wait.
    properties = {"bootstrap.servers": brokers, "receive.message.max.bytes": "100000000"}
    batches = read_chunk(properties, "g", chunk, Settings(), patience=5)
    digests = [hashlib.md5(v.as_py()).hexdigest() for batch in batches for v in batch.column("value")]
    assert digests == [hashlib.md5(v).hexdigest() for v in (b"before", value, b"behind")]


@pytest.mark.parametrize("content", ["value", "record"])
@pytest.mark.parametrize("large", ["value", "key", "headers"])
def test_batches_follow_the_size_of_the_records(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, large: str, content: str
) -> None:
    monkeypatch.setattr(reader, "BATCH_BYTES", 100_000)
    monkeypatch.setattr(reader, "ROUND", 20)
    topic = new_topic(kafka.bootstrap_servers)
    small, much = Record(0, DAY, b"x"), bytes(10_000)
    big = small._replace(**{large: [("h", much)] if large == "headers" else much})
    # Large ones behind small ones, and the other way round.
    produce(kafka.bootstrap_servers, topic, [big] * 100 + [small] * 5000 + [big] * 100)
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=5200)
    settings = Settings.model_validate({"content": content})
    batches = list(read_chunk({"bootstrap.servers": kafka.bootstrap_servers}, "g", chunk, settings, patience=20))
    assert [n for b in batches for n in b.column("offset").to_pylist()] == list(range(5200))
    # Of those that may be large one round more than fits.
    most = [b.num_rows for b in batches if int(b.column("offset")[-1].as_py()) in (*range(100), *range(5180, 5200))]
    together = 2 * reader.ROUND * reader.WITHOUT_OBJECTS
    assert max(most) <= 10 + together
    if content == "record" or large == "value":
        assert max(b.nbytes for b in batches) <= (12 + together) * 10_100
    assert max(b.num_rows for b in batches) >= reader.BATCH


def test_a_consumer_does_not_fetch_many_records_ahead_whose_keys_and_headers_nobody_counts(kafka: Kafka) -> None:
    """librdkafka holds its queue to the bytes of values, and to a number of records."""
    topic = new_topic(kafka.bootstrap_servers)
    padding = random.Random(3).randbytes(2000)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"x", headers=[("h", padding)])] * 60_000)
    process = subprocess.run(
        [sys.executable, __file__, kafka.bootstrap_servers, topic, "60000"],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}"},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    # All of them are 120 MB, and as much again where librdkafka makes headers of them.
    assert int(process.stdout) < 60 << 20


@READERS
@pytest.mark.parametrize("content", ["value", "record"])
def test_a_record_with_a_header_that_cannot_be_read_is_given_with_all_else_and_says_so(
    kafka: Kafka, content: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """confluent_kafka fails once, and then gives a list that ends the process of whoever looks into it."""
    use(how, monkeypatch)
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers)
    good, none = (b"good", b"1"), (b"b\xff", b"2")
    for number, headers in enumerate([[good], [good, none, good], [none, none], [], [good]]):
        produce_raw(brokers, topic, 0, DAY + number, b"%d" % number, headers)
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=5)
    settings = Settings.model_validate({"content": content})
    read = read_chunk({"bootstrap.servers": brokers}, "g", chunk, settings, patience=20)
    rows = [row for batch in read for row in batch.to_pylist()]
    assert [(row["offset"], row["timestamp"], row["value"]) for row in rows] == [
        (n, DAY + n, b"%d" % n) for n in range(5)
    ]
    if content == "record":
        assert [len(row["headers"]) for row in rows] == [1, 0, 0, 0, 1]
        assert [n for n, row in enumerate(rows) if row.get("unread")] == [1, 2]
        assert {row["unread"]["column"] for row in rows[1:3]} == {"headers"}


@pytest.mark.skipif(library() is None, reason=why_not())
@given(data=st.data())
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_readers_give_the_same(kafka: Kafka, data: st.DataObject) -> None:
    """tests/unit/test_drain.py has odder messages, and no broker."""
    some = st.one_of(st.none(), st.binary(max_size=30), st.just(b"large" * 20_000))
    headers = st.lists(
        st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5), some), max_size=3
    )
    record = st.builds(Record, st.just(0), st.integers(1, 2**61) | st.just(DAY), some, some, headers)
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, message_timestamp_type=data.draw(st.sampled_from(["CreateTime", "LogAppendTime"])))
    count = 0
    for transaction in (None, "abort", "commit"):
        records = data.draw(st.lists(record, min_size=1, max_size=20))
        produce(brokers, topic, records, transaction)
        count += len(records) + (transaction is not None)
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=count)
    for content in ("value", "record"):
        tables = []
        for how in ("drain", "python"):
            with pytest.MonkeyPatch.context() as patch:
                use(how, patch)
                batches = read_chunk(
                    {"bootstrap.servers": brokers}, "g", chunk, Settings.model_validate({"content": content}), 20
                )
                tables.append(pa.Table.from_batches(list(batches)).combine_chunks())
        assert tables[0] == tables[1]


def test_what_one_batch_cannot_hold_comes_in_several(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MOST", 10)
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"1234")] * 50)
    for content in ("value", "record"):
        assert offsets(kafka, topic, 0, 50, content=content) == list(range(50))


def held_while_waiting(brokers: str, topic: str, end: int) -> int:
    """The bytes that a reader takes while nobody takes its records, until it takes no more."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")

    before = resident()
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=end)
    batches = read_chunk({"bootstrap.servers": brokers}, "g", chunk, Settings(content="value"), patience=20)
    next(batches)
    peak = [0]

    def settled() -> bool:
        peak.append(resident())
        return len(peak) > 20 and peak[-1] == peak[-20]

    until(settled)
    return resident() - before


if __name__ == "__main__":
    print(held_while_waiting(*sys.argv[1:3], int(sys.argv[3])))

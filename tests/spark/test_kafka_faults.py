"""Case 17: whatever happens between the job and the brokers, every record is archived once, or none is visible.

The job runs against a broker of this module's own, through a proxy that breaks, slows, holds and damages what the
broker answers; the broker itself is killed, too.
"""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_archiver.kafka import reader
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.plan import Chunk
from kafka_archiver.model.settings import Settings
from kafka_archiver.spark.failures import TRANSIENT_EXIT, UNKNOWN_EXIT, exit_code
from kafka_archiver.values.ranges import TopicPartition
from scripts.stack.kafka import Kafka, KafkaPorts
from scripts.stack.ports import free_ports
from scripts.stack.s3 import S3
from tests.support import quick
from tests.support.archiver import Archiver, hour
from tests.support.kafka_proxy import FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, KafkaProxy, listening
from tests.support.topics import DAY, HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

COUNT = 16_000
MARKER = b"record-010000-"
both_readers = pytest.mark.parametrize("reader", ["native", "spark"])


@dataclass(frozen=True)
class Way:
    """A broker of this module's own, and a proxy before it."""

    broker: Kafka
    proxy: KafkaProxy


@pytest.fixture(scope="module")
def ways(stack_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    ports, more = free_ports(KafkaPorts), free_ports(KafkaPorts)
    listener, advertised = more.clients, more.controller
    broker = Kafka(stack_directory / "faulty", ports, listening(ports, listener, advertised), quick.JAVA)
    try:
        broker.start()
        with KafkaProxy(listener, advertised, tmp_path_factory.mktemp("mitmproxy")).serving() as proxy:
            yield Way(broker, proxy)
    finally:
        broker.stop(grace=0)


@pytest.fixture
def way(ways: Way) -> Iterator[Way]:
    yield ways
    ways.proxy.pass_on()


def value(number: int) -> bytes:
    """About 600 bytes that compress badly: the answers with all records need many pieces."""
    return f"record-{number:06}-{hashlib.shake_256(b'%d' % number).hexdigest(300)}".encode()


@pytest.fixture(scope="module")
def topic(ways: Way) -> str:
    name = new_topic(ways.broker.bootstrap_servers, 2)
    records = [Record(n % 2, DAY + n % 3 * HOUR, value(n)) for n in range(COUNT)]
    produce(ways.broker.bootstrap_servers, name, records)
    return name


@pytest.fixture(scope="module")
def undisturbed(
    ways: Way, s3: S3, topic: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    archiver = archive(ways, s3, topic, tmp_path_factory.mktemp("undisturbed"), "native")
    archiver.run(hour(3))
    data = b"".join(gzip.decompress(archiver.context.store.get(key) or b"") for key in archiver.objects())
    assert sorted(data.splitlines()) == [value(n) for n in range(COUNT)]
    return archiver.etags()


def archive(way: Way, s3: S3, topic: str, directory: Path, reader: str) -> Archiver:
    return Archiver(way.broker, s3, directory, [topic], {"chunk_records": 4000}, source={"reader": reader})


@both_readers
def test_connections_that_break_in_the_middle_of_answers(
    way: Way, s3: S3, topic: str, undisturbed: dict[str, str], tmp_path: Path, reader: str
) -> None:
    archiver = archive(way, s3, topic, tmp_path, reader)
    way.proxy.reset([FETCH], first=2, last=6)
    archiver.behind(brokers=way.proxy.brokers).run(hour(3))
    assert way.proxy.happened() > 6
    assert archiver.etags() == undisturbed
    assert archiver.account(hour(3)) == {"archived": COUNT}


def test_an_answer_that_was_damaged_once_is_read_again(
    way: Way, s3: S3, topic: str, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    archiver = archive(way, s3, topic, tmp_path, "native")
    way.proxy.corrupt(MARKER, times=2)
    archiver.behind(brokers=way.proxy.brokers).run(hour(3))
    assert way.proxy.happened() > 2
    assert archiver.etags() == undisturbed


def test_answers_that_are_always_damaged_are_never_archived(
    way: Way, s3: S3, topic: str, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    archiver = archive(way, s3, topic, tmp_path, "native")
    beyond = archiver.behind(brokers=way.proxy.brokers)
    way.proxy.corrupt(MARKER, times=1_000_000)
    with pytest.raises(Exception, match=r"CRC|crc|checksum|[Cc]orrupt") as caught:
        beyond.run(hour(3))
    assert exit_code(caught.value) in (TRANSIENT_EXIT, UNKNOWN_EXIT)
    assert archiver.objects() == {}
    # Uploads may be left: Spark may kill the worker of another task before it has thrown away what it had sent. They go
    # with the run's commit. (That a task that fails leaves none of its own is shown in test_tasks.py.)
    way.proxy.pass_on()
    beyond.run(hour(3))
    assert archiver.etags() == undisturbed
    assert list(archiver.context.store.list_uploads("")) == []


@both_readers
def test_case_17_a_broker_that_is_killed_in_the_middle_and_comes_back(
    way: Way, s3: S3, topic: str, undisturbed: dict[str, str], tmp_path: Path, reader: str
) -> None:
    # So deep that no path of a socket fits: Spark's reader does without.
    directory = tmp_path / ("deep" * 20)
    directory.mkdir()
    beyond = archive(way, s3, topic, directory, reader).behind(brokers=way.proxy.brokers)
    work = beyond.plan(hour(3))
    way.proxy.hold([FETCH], first=3)
    job = beyond.start(work.archive)
    try:
        until(lambda: way.proxy.happened() > 3 or job.poll() is not None, 100)
        assert job.poll() is None
        way.broker.stop(grace=0)
        way.proxy.pass_on()
        way.broker.start()
        output, _ = job.communicate(timeout=120)
    finally:
        job.kill()
    assert job.returncode == 0, output[-3000:]
    beyond.finish(work)
    assert beyond.etags() == undisturbed


def test_connections_that_break_while_a_run_is_planned_and_committed(
    way: Way, s3: S3, topic: str, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    """A break is survived by asking again, or is for the next attempt; it is never taken for an answer."""
    archiver = archive(way, s3, topic, tmp_path, "native")

    def attempt(timeout: float = 3) -> Archiver:
        """With clients of its own: the others wait longer and longer before they connect again."""
        beyond = archiver.behind(brokers=way.proxy.brokers)
        beyond.context.cluster.timeout = timeout
        return beyond

    for api in (OFFSET_FETCH, LIST_OFFSETS):
        way.proxy.reset([api])
        with pytest.raises(TransientError):
            attempt().plan(hour(3))
        assert way.proxy.pass_on() >= 1, api
        assert archiver.context.ledger.plan(hour(3).id) is None
    way.proxy.reset([LIST_OFFSETS], last=1)
    assert attempt().context.cluster.log_ends([TopicPartition(topic, 0)], "read_uncommitted")
    way.proxy.reset([OFFSET_FETCH], last=1)
    work = attempt(15).plan(hour(3))
    way.proxy.pass_on()
    for run in work.archive:
        attempt().job().run(run)
    for api in (OFFSET_FETCH, OFFSET_COMMIT):
        way.proxy.reset([api])
        with pytest.raises(TransientError):
            attempt().finish(work)
        assert way.proxy.pass_on() >= 1, api
        assert archiver.context.ledger.commit(hour(3).id) is not None
    way.proxy.reset([OFFSET_COMMIT], last=1)
    attempt(15).finish(work)
    assert archiver.etags() == undisturbed
    partitions = [TopicPartition(topic, n) for n in range(2)]
    ends = archiver.context.cluster.committed(archiver.archive.group, partitions)
    assert ends == dict.fromkeys(partitions, COUNT // 2)


def read(way: Way, topic: str, end: int, patience: float, **properties: str) -> list[int]:
    """The offsets that the native reader gives of partition 0."""
    chunk = Chunk(topic=topic, partition=0, generation=0, start=0, end=end)
    batches = reader.read_chunk(
        {"bootstrap.servers": way.proxy.brokers, **properties}, "g", chunk, Settings(), patience
    )
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_the_reader_survives_a_connection_that_is_a_black_hole(way: Way, topic: str) -> None:
    way.proxy.hold([FETCH], first=2, last=2)
    assert read(way, topic, 1000, patience=30, **{"socket.timeout.ms": "1000"}) == list(range(1000))
    assert way.proxy.happened() > 2


def test_the_reader_gives_up_on_brokers_that_are_a_black_hole(way: Way, topic: str) -> None:
    way.proxy.hold([])
    with pytest.raises(TransientError, match=r"no answer from the Kafka brokers at .* within 2 s while reading"):
        read(way, topic, 1000, patience=2)


def test_a_long_silence_of_brokers_that_answer_is_no_reason_to_give_up(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Aborted transactions on a slow line: nothing of what is read in seconds reaches the reader. All has an end."""
    brokers = way.broker.bootstrap_servers
    aborted = new_topic(brokers)
    produce(brokers, aborted, [Record(0, DAY, value(n)) for n in range(COUNT)], "abort")
    produce(brokers, aborted, [Record(0, DAY, b"at last")])
    # After an answer without a record librdkafka asks for twice as much, and a sign of life comes behind the answer.
    small = {"fetch.message.max.bytes": "100000", "fetch.max.bytes": "1000000"}
    way.proxy.slow(0, 2e6, [FETCH])
    # The coordinator may write its marker behind the record.
    assert read(way, aborted, COUNT + 2, patience=1.5, **small)[0] in (COUNT, COUNT + 1)
    monkeypatch.setattr(reader, "PATIENCES", 2)
    with pytest.raises(TransientError, match=r"within 3 s while reading"):
        read(way, aborted, COUNT + 2, patience=1.5, **small)


def test_a_log_that_ends_before_the_chunk_is_said_to(way: Way, topic: str) -> None:
    with pytest.raises(TransientError, match=rf"the log of .* ends at {COUNT // 2}, before the end of .*truncated"):
        read(way, topic, COUNT, patience=1)

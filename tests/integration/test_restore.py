"""A restore on a real broker: every kind of record, from every format that has whole records, and real kills."""

import os
import random
import signal
import subprocess
from typing import Any

import confluent_kafka
import pytest

from kafka_archiver.jobs.restore import RestoreJob
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.kafka.target import KafkaTarget
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.model.restore import RestoreLimits, RestorePlan, RestoreSelection
from kafka_archiver.model.restore_progress import RestoreProgress
from kafka_archiver.model.restore_request import RestoreRequest
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.verify import PartitionReader
from kafka_archiver.work.restore.write import PartitionWriter
from scripts.stack.kafka import Kafka
from tests.support.archiver import Archiver, Services, hour
from tests.support.topics import DAY, HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

YEAR_2099 = 4_070_908_800_000
TIMES = [DAY, DAY - 1, DAY + HOUR, -1, 1, YEAR_2099, DAY - 400 * 24 * HOUR]
KEYS = [None, b"", b"k", b"\xff\x00\xfe", b"k" * 300]
VALUES = [None, b"", b"v", b"\x00\xff\n\r,\"'", b'{"a": 1}', "ü→".encode(), b"x" * 5000]
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("a", b"1")],
    [("a", None), ("a", b""), ("a", None), ("b", b"\xff")],
    [("", b"empty name"), ("z", b"1"), ("a", b"2"), ("ü", b"\n")],
]
# Each stores whole records; `both` has decoded columns beside them.
STORES: dict[str, dict[str, Any]] = {
    "jsonl": {"format": "jsonl", "content": "record"},
    "avro": {"format": "avro", "content": "record"},
    "parquet": {"format": "parquet", "content": "record"},
    "csv": {"format": "csv", "content": "record"},
    "block_gzip": {"format": "block_gzip", "content": "record"},
    "mak": {"format": "mak", "content": "record", "options": {"version": 2}},
    "sealed": {"format": "jsonl", "content": "record", "encryption": {"client": {"connection": "x"}}},
    "both": {"format": "parquet", "content": "both"},
}


def odd_records(seed: int) -> list[Record]:
    draw = random.Random(seed)
    return [
        Record(n % 2, draw.choice(TIMES), draw.choice(VALUES), draw.choice(KEYS), draw.choice(HEADERS))
        for n in range(60)
    ]


def consumed(brokers: str, topic: str, partition: int, isolation: str = "read_committed") -> list[tuple[Any, ...]]:
    """Return the records of a partition as a plain consumer sees them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
    records: list[tuple[Any, ...]] = []
    try:
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                return records
            kind, time = message.timestamp()
            # librdkafka gives 0 for a record without a time.
            stamp = -1 if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else time
            records.append((message.key(), message.value(), message.headers() or [], stamp))
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def source(kafka: Kafka) -> str:
    """A topic of two partitions with records of every kind, in transactions, aborted ones too, and without."""
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, 2)
    for seed, transaction in enumerate([None, "commit", "abort", None, "abort", "commit"]):
        produce(brokers, topic, odd_records(seed), transaction)
    return topic


@pytest.mark.parametrize("store", STORES)
def test_what_is_restored_is_what_was_there(services: Services, source: str, store: str) -> None:
    settings = {**STORES[store], "chunk_records": 50}
    more: dict[str, Any] = {"policies": {"bad_record": "dead_letter"}, "settings": settings}
    if store == "both":
        # Records that are no JSON become dead letters, which a restore takes too.
        more["source"] = {"value": {"decode": "json", "schema": [{"name": "a", "type": "int64"}]}}
    if store == "sealed":
        more["master_keys"] = {"secret": "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="}
    archiver = services.archive_of(source, **more)
    archiver.run(hour(3), plain=True)
    plan = restored(archiver, source, services.kafka, RestoreLimits(transaction_bytes=10_000))
    brokers = services.kafka.bootstrap_servers
    [topic] = plan.topics
    for partition in range(2):
        assert consumed(brokers, topic.topic, partition) == consumed(brokers, source, partition)


def restored(archiver: Archiver, source: str, kafka: Kafka, limits: RestoreLimits) -> RestorePlan:
    """Restore a topic into a new one in this process, with one stop in between; verify it."""
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, 2)
    properties = {"bootstrap.servers": brokers}
    ledger, target = archiver.context.ledger, KafkaTarget(properties, patience=20)
    request = RestoreRequest("r", RestoreSelection(topics=(source,)), {source: topic}, limits=limits)
    plan = plan_restore(ledger, Cluster(properties), request)
    for name in plan.targets():
        lane = Lane(ledger, plan, name, frozenset())
        asked = iter([False, False, True])
        with pytest.raises(TransientError, match="stopped"):
            PartitionWriter(target, lane, Pace(), stop=lambda: next(asked, True)).run()  # noqa: B023 - called at once
        PartitionWriter(target, lane, Pace()).run()
        report = PartitionReader(target, lane, lambda _: None).run().report
        assert report.verified, report
    return plan


RECORDS = 20_000


@pytest.mark.timeout(900)
def test_a_restore_that_is_killed_goes_on_where_it_was(services: Services) -> None:
    records = [Record(n % 2, DAY + n, b"%d" % n, b"k%d" % (n % 7)) for n in range(RECORDS)]
    archiver = services.archive(records, 2, settings={"content": "record", "chunk_records": 10_000})
    archiver.run(hour(3), plain=True)
    brokers, source = services.kafka.bootstrap_servers, archiver.topics[0]
    topic = new_topic(brokers, 2)
    limits = RestoreLimits(records_per_second=4_000, transaction_seconds=1, transaction_bytes=20_000)
    request = RestoreRequest("r", RestoreSelection(topics=(source,)), {source: topic}, limits=limits)
    plan = plan_restore(archiver.context.ledger, Cluster({"bootstrap.servers": brokers}), request)
    job = start(archiver, "write")
    try:
        until(lambda: written(brokers, plan) > RECORDS // 4 or job.poll() is not None, 240)
        assert job.poll() is None
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(30)
    for step in ("write", "verify"):
        job = start(archiver, step)
        output, _ = job.communicate(timeout=300)
        assert job.returncode == 0, output[-5000:]
    report = archiver.context.ledger.restore_report("r").document
    assert report
    assert report.verified
    assert sum(part.written for part in report.partitions) == RECORDS
    for partition in range(2):
        values = [value for _, value, *_ in consumed(brokers, topic, partition)]
        assert values == [b"%d" % n for n in range(partition, RECORDS, 2)]
    # What a consumer sees that does not wait for the end of transactions is what the report says of aborted records.
    for part in report.partitions:
        uncommitted = consumed(brokers, topic, part.partition, "read_uncommitted")
        assert len(uncommitted) == part.records + part.aborted
    offsets = archiver.context.ledger.restore_map("r").document
    assert offsets
    assert sum(log.count for log in offsets.logs) == RECORDS


def written(brokers: str, plan: RestorePlan) -> int:
    """Return how many records are written by the progress in the target."""
    positions = Cluster({"bootstrap.servers": brokers}).positions(plan.group, plan.targets())
    stamps = (RestoreProgress.from_stamp(position.stamp) for position in positions.values() if position)
    return sum(stamp.records for stamp in stamps if stamp)


def start(archiver: Archiver, step: str) -> "subprocess.Popen[str]":
    """Start the job of a step with spark-submit."""
    *command, _ = archiver.command(["x"])
    job = RestoreJob.of(archiver.archive, ["r", step])
    return subprocess.Popen(
        [*command, job.to_argument()],
        env=archiver.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=archiver.directory,
        start_new_session=True,
    )

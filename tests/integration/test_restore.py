"""A restore on a real broker: every kind of record, from every format that has whole records, and real kills."""

import os
import signal
import subprocess
from collections import Counter

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
from kafka_archiver.work.restore.partition_writer import PartitionWriter
from kafka_archiver.work.restore.plan import plan_restore
from kafka_archiver.work.restore.verify import PartitionReader
from scripts.stack.kafka import Kafka
from tests.support.archiver import Archiver, Services, hour
from tests.support.java_consumer import java_consumed
from tests.support.odd_records import STORES, Consumed, Content, archiver_options, consumed, contents, odd_records
from tests.support.restore_run import run_for
from tests.support.topics import DAY, Record, new_topic, produce, set_topic
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def source(kafka: Kafka) -> str:
    """A topic of two partitions with records of every kind, in transactions, aborted ones too, and without."""
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, 2)
    for seed, transaction in enumerate([None, "commit", "abort", None, "abort", "commit"]):
        produce(brokers, topic, odd_records(seed), transaction)
    return topic


@pytest.fixture(scope="module")
def compacted(kafka: Kafka) -> str:
    """Such a topic, which Kafka's cleaner has compacted: its records have keys, and its offsets have gaps.

    They are in the partitions 2 and 3.
    """
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, 4, cleanup_policy="compact", min_cleanable_dirty_ratio="0.0001", segment_bytes="1048576")
    records = []
    for number, record in enumerate(odd_records(9, count=160)):
        key = record.key if number % 3 else (record.key or b"") + b"%d" % (number // 4)
        if key is not None:
            records.append(record._replace(key=key, partition=2 + record.partition))
    for transaction in (None, "commit", "abort"):
        produce(brokers, topic, records, transaction)

    def is_compacted() -> bool:
        # The cleaner leaves the newest segment alone; a record that is this large begins another one.
        produce(brokers, topic, [Record(partition, DAY, b"x" * 600_000, b"last") for partition in (2, 3)])
        return all(len(consumed(brokers, topic, partition)) < len(records) // 2 for partition in (2, 3))

    until(is_compacted, 120, every=0.5)
    # So that it is the same for every reader from now on.
    set_topic(brokers, topic, "cleanup.policy", "delete")
    until(lambda: len({len(consumed(brokers, topic, 2) + consumed(brokers, topic, 3)) for _ in range(3)}) == 1)
    return topic


def of_both(brokers: str, odd: str, compacted: str) -> dict[int, list[Consumed]]:
    """Return the records of both topics by partition, as librdkafka reads them."""
    places = [(odd, 0), (odd, 1), (compacted, 2), (compacted, 3)]
    return {partition: consumed(brokers, topic, partition) for topic, partition in places}


def contents_of(records: dict[int, list[Consumed]]) -> dict[int, list[Content]]:
    """Return records without their offsets."""
    return {partition: [record.content for record in rows] for partition, rows in records.items()}


@pytest.mark.parametrize("store", STORES)
def test_what_is_restored_is_what_was_there(services: Services, source: str, compacted: str, store: str) -> None:
    archiver = services.archive_of(source, compacted, **archiver_options(store))
    archiver.run(hour(3), plain=True)
    brokers, limits = services.kafka.bootstrap_servers, RestoreLimits(transaction_bytes=10_000)
    copies = [
        restored(archiver, topic, services.kafka, limits, partitions).topics[0].topic
        for topic, partitions in ((source, 2), (compacted, 4))
    ]
    # Offsets may not be the same: nobody can write the gaps of a compacted source.
    contents = contents_of(of_both(brokers, source, compacted))
    assert contents_of(of_both(brokers, *copies)) == contents
    # Of the same bytes once: that both clients see the same is below.
    if store == "both":
        assert contents_of(java_consumed(brokers, copies, sum(map(len, contents.values())))) == contents


def test_javas_consumer_sees_the_sources_as_librdkafka_does(kafka: Kafka, source: str, compacted: str) -> None:
    records = of_both(kafka.bootstrap_servers, source, compacted)
    assert java_consumed(kafka.bootstrap_servers, [source, compacted], sum(map(len, records.values()))) == records
    for rows in records.values():
        offsets = [record.offset for record in rows]
        assert offsets != list(range(offsets[0], offsets[0] + len(offsets)))


def restored(archiver: Archiver, source: str, kafka: Kafka, limits: RestoreLimits, partitions: int = 2) -> RestorePlan:
    """Restore a topic into a new one in this process, with one stop in between; verify it."""
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, partitions)
    properties = {"bootstrap.servers": brokers}
    ledger, target = archiver.context.ledger, KafkaTarget(properties, patience=20)
    request = RestoreRequest(f"r-{topic}", RestoreSelection(topics=(source,)), {source: topic}, limits=limits)
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
        values = [record.value for record in contents(brokers, topic, partition)]
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


@pytest.mark.timeout(600)
def test_restores_under_real_kills_keep_every_promise() -> None:
    """`make attack` does this for longer, with other seeds, and with Spark's processes."""
    counts = Counter[str]()
    # On a busy machine a round may end before its first kill.
    for seed in (4, 5, 6):
        counts += run_for(0.25, seed=seed, at_once=4, spark_share=0)
        assert not counts["faults"]
        if counts["attempts killed"] + counts["attempts frozen"] and counts["verified"]:
            break
    assert counts["attempts killed"] or counts["attempts frozen"]
    assert counts["verified"]

"""The audit against a real broker and a real S3 server, of what the native reader archived."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafka_archiver.audit.report import Report
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.finish import Choice
from kafka_archiver.spark.job import ArchiveJob
from kafka_archiver.steps.auditing import audit
from kafka_archiver.writer.result import Limits
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.engine import PlainEngine
from tests.support.topics import DAY, HOUR, Record, delete_records, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def archive(archiver: Archiver, number: int) -> None:
    context = archiver.context
    work = archiver.plan(hour(number))
    engine = PlainEngine({"bootstrap.servers": archiver.kafka.bootstrap_servers}, context.store, Limits())
    for run in work.archive:
        ArchiveJob(context.cluster, context.store, context.ledger, engine, Choice()).run(run)
    archiver.finish(work)


def audited(archiver: Archiver) -> Report:
    context = archiver.context
    return audit(context.archive, context.store, datetime.now(UTC), deep=True, cluster=context.cluster)


def kinds(archiver: Archiver) -> dict[str, str]:
    return {f.kind: f.where for f in audited(archiver).findings}


def test_what_the_brokers_say(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers, partitions=2)
    # The first hour has objects of several parts.
    times = [DAY if n < 300 else DAY + n * HOUR // 4 for n in range(400)]
    records = [Record(n % 2, time, b"x" * 50_000, b"k", [("h", None)]) for n, time in enumerate(times)]
    produce(brokers, topic, records)
    produce(brokers, topic, [Record(0, DAY, b"never")], transaction="abort")
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"content": "record", "codec": "none", "part_bytes": 5 << 20})
    archive(archiver, 0)
    assert any(etag.endswith("-2") for etag in archiver.etags().values())
    report = audited(archiver)
    assert report.findings == ()
    assert (report.counts.rows, report.counts.read) == (400, report.counts.objects)

    context, (first, second) = archiver.context, (TopicPartition(topic, n) for n in (0, 1))
    before = context.cluster.committed(context.archive.group, [first, second])
    context.cluster.move_group(context.archive.group, {first: 7})
    assert kinds(archiver) == {"group-moved": str(first)}
    context.cluster.move_group(context.archive.group, {first: before[first] or 0})
    assert kinds(archiver) == {}

    produce(brokers, topic, [Record(0, DAY + 100 * HOUR, b"y") for _ in range(9)])
    end = before[first] or 0
    delete_records(brokers, topic, end)
    assert kinds(archiver) == {"retention-near": f"{first} [{end}, {end + 9})"}
    delete_records(brokers, topic, end + 5)
    assert kinds(archiver) == {"retention-passed": f"{first} [{end}, {end + 5})"}

    admin = AdminClient({"bootstrap.servers": brokers})
    admin.delete_topics([topic])[topic].result(timeout=30)
    until(lambda: context.cluster.topic_ids([topic])[topic] is None, 30)
    assert set(kinds(archiver)) == {"topic-gone"}
    until(lambda: _made(brokers, topic), 30)
    assert set(kinds(archiver)) == {"topic-recreated"}


def _made(brokers: str, topic: str) -> bool:
    try:
        new_topic(brokers, partitions=2, name=topic)
    except KafkaException as error:
        # A broker that still deletes it.
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True

"""The audit against a real broker and a real S3 server, of what the native reader archived."""

import json
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafka_archiver.audit.inspection import audit
from kafka_archiver.audit.report import Report
from kafka_archiver.store import open_store
from kafka_archiver.values.ranges import Range, TopicPartition
from scripts.stack.paths import ROOT
from scripts.stack.s3 import S3
from scripts.stack.settings import client_settings
from tests.support.archiver import Archiver, Services, hour
from tests.support.lake import Lake
from tests.support.topics import DAY, HOUR, Record, new_topic
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def audited(archiver: Archiver) -> Report:
    context = archiver.context
    return audit(context.archive, context.ledger.store, datetime.now(UTC), deep=True, cluster=context.cluster)


def kinds(archiver: Archiver) -> dict[str, str]:
    return {f.kind: f.subject for f in audited(archiver).findings}


def test_what_the_brokers_say(services: Services) -> None:
    # The first hour has objects of several parts.
    times = [DAY if n < 300 else DAY + n * HOUR // 4 for n in range(400)]
    records = [Record(n % 2, time, b"x" * 50_000, b"k", [("h", None)]) for n, time in enumerate(times)]
    settings = {"content": "record", "codec": "none", "part_bytes": 5 << 20}
    archiver = services.archive(records, 2, settings=settings)
    [topic], brokers = archiver.topics, services.kafka.bootstrap_servers
    archiver.produce([Record(0, DAY, b"never")], "abort")
    archiver.run(hour(0), plain=True)
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

    archiver.produce([Record(0, DAY + 100 * HOUR, b"y")] * 9)
    end = before[first] or 0
    archiver.delete_records(end)
    assert kinds(archiver) == {"retention-near": f"{first} [{end}, {end + 9})"}
    archiver.delete_records(end + 5)
    [passed] = audited(archiver).findings
    assert (passed.kind, passed.subject) == ("retention-passed", str(first))
    assert f"5 offsets of {first} are gone: the archive stands at {end}" in passed.observed

    admin = AdminClient({"bootstrap.servers": brokers})
    admin.delete_topics([topic])[topic].result(timeout=30)
    until(lambda: context.cluster.topic_ids([topic])[topic] is None, 30)
    assert set(kinds(archiver)) == {"topic-gone"}
    until(lambda: _topic_is_new(brokers, topic), 30)
    assert set(kinds(archiver)) == {"topic-recreated"}


def test_without_airflow_and_without_kafka(s3: S3, tmp_path: Path) -> None:
    """By somebody who has nothing but the store's address, and who may read it."""
    name = f"lone-{uuid.uuid4().hex[:8]}"
    url = f"s3://{s3.bucket}/{name}"
    store = open_store(url, s3.options())
    lake = Lake(store, {TopicPartition("orders", 0): Range(0, 3)}, name="orders")
    lake.run(2)

    def ask(*words: str) -> "subprocess.CompletedProcess[str]":
        environment = {**client_settings("", s3), "PYTHONPATH": str(ROOT / "include")}
        command = [sys.executable, "-m", "kafka_archiver.audit.inspection", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    done = ask(url, "orders", "--deep")
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["verdict"], json.loads(done.stdout)["counts"]["read"]) == ("clean", 3)
    [key, *_] = lake.stored()
    store.delete(key)
    done = ask(url, "orders")
    assert done.returncode == 1
    assert [f["where"] for f in json.loads(done.stdout)["findings"]] == [key]
    done = ask(url, "payments")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"no archive 'payments' in {url}: expected its ledger below _ledger/payments/\n"
    done = ask("ftp://x", "payments")
    assert (done.returncode, done.stderr) == (
        1,
        "store.url: expected s3://bucket/prefix or az://container/prefix, found 'ftp://x'\n",
    )


def _topic_is_new(brokers: str, topic: str) -> bool:
    try:
        new_topic(brokers, partitions=2, name=topic)
    except KafkaException as error:
        # A broker that still deletes it.
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True

"""The job on a real broker and a real S3 server: every record exactly once, in the hour of its timestamp."""

import dataclasses
import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession

from kafka_archiver.errors import IntegrityError, PermanentError
from kafka_archiver.ranges import TopicPartition
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.kafka_twin import Entry
from tests.support.stored import as_json, as_row, hour_path, parse
from tests.support.topics import (
    DAY,
    HOUR,
    Record,
    delete_records,
    new_topic,
    produce,
)
from tests.support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

YEAR_9999 = 253_402_300_799_999
ODD = [
    Record(0, DAY, b'{"n": 1}', b"key", [("h", b"1"), ("h", b"2"), ("none", None), ("empty", b"")]),
    Record(0, YEAR_9999, b'{"n": 2}', None),
    # One millisecond after 1970 began: the producer takes 0 for "now".
    Record(0, 1, b'{"n": 3}', b""),
    Record(0, DAY + HOUR - 1, None, b"tombstone"),
    Record(0, DAY + HOUR, b"\xff\xfe", b"\x00\x80"),
    Record(0, DAY - 5 * HOUR, b"", b"k", [("bin", b"\xff")]),
    Record(0, DAY + HOUR - 1, "ü\u2028\n".encode(), "schlüssel".encode()),
]


@pytest.mark.parametrize(
    ("format_name", "codec"), [("jsonl", "zstd"), ("avro", "gzip"), ("parquet", "zstd"), ("parquet", "none")]
)
def test_odd_records_are_stored_whole_whatever_the_format(
    kafka: Kafka, s3: S3, tmp_path: Path, format_name: str, codec: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, ODD)
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"format": format_name, "codec": codec, "content": "record"})
    archiver.run(hour(1))
    ledger, make = archiver.context.ledger, as_json if format_name == "jsonl" else as_row
    plan, manifest = ledger.plan(hour(1).id), ledger.manifest(hour(1).id)
    assert plan
    assert manifest
    filed: dict[str, list[int]] = {}
    for offset, record in enumerate(ODD):
        filed.setdefault(hour_path(record.timestamp), []).append(offset)
    assert {entry.path for entry in manifest.objects} == set(filed)
    for entry in manifest.objects:
        found = parse(archiver.context.store.get(entry.key) or b"", entry.key, plan)
        assert found == [make(entry, o, Entry(ODD[o].timestamp, ODD[o], "committed")) for o in filed[entry.path]]
    assert archiver.account(hour(1)) == {"archived": len(ODD)}


def test_bytes_do_not_depend_on_batches_or_workers(kafka: Kafka, s3: S3, tmp_path: Path, spark: SparkSession) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    values = (json.dumps({"n": n, "text": "lorem ipsum " * (n % 7)}).encode() for n in range(20_000))
    produce(
        kafka.bootstrap_servers, topic, [Record(n % 2, DAY + n % 3 * HOUR, value) for n, value in enumerate(values)]
    )
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 4_000})
    archiver.run(hour(3))
    before = archiver.etags()
    assert len(before) == 2 * 3 * 3
    size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(size, "333")
    try:
        job = archiver.job()
        job.engine._limits = dataclasses.replace(job.engine._limits, memory_bytes=16 << 20, open_objects=1)
        archiver.context.store.delete(sorted(before)[0])
        job.run(hour(3).id)
    finally:
        spark.conf.unset(size)
    assert archiver.etags() == before


@pytest.mark.parametrize("content", ["value", "record"])
def test_both_readers_give_the_same_bytes(kafka: Kafka, s3: S3, tmp_path: Path, content: str) -> None:
    brokers = kafka.bootstrap_servers
    topic, other = new_topic(brokers, 2), new_topic(brokers, message_timestamp_type="LogAppendTime")
    produce(brokers, topic, [r for r in ODD if content == "record" or b"\n" not in (r.value or b"")])
    produce(brokers, topic, [Record(1, DAY + n % 2 * HOUR, b"%d" % n) for n in range(5000)], "commit")
    produce(brokers, topic, [Record(n % 2, DAY, b"no") for n in range(100)], "abort")
    produce(brokers, topic, [Record(1, DAY, b"%d" % n, headers=[("h", None)]) for n in range(3000)], "commit")
    produce(brokers, topic, [Record(n % 2, DAY, b"no") for n in range(100)], "abort")
    produce(brokers, other, [Record(0, DAY, b"appended")])
    settings = {"chunk_records": 1500, "content": content}
    archiver = Archiver(kafka, s3, tmp_path, [topic, other], settings, source={"reader": "native"})
    archiver.run(hour(2))
    before, account = archiver.etags(), archiver.account(hour(2))
    assert account["archived"] == 8001 + len(ODD) - (content == "value")
    manifest = archiver.context.ledger.manifest(hour(2).id)
    # Without them this is no replay: the other reader has to find everything by itself.
    for document in "intent", "manifest":
        archiver.context.store.delete(f"_ledger/{archiver.archive.archive}/runs/{hour(2).id}/{document}.json")
    for key in before:
        archiver.context.store.delete(key)
    job = archiver.job()
    job.engine._reader = "spark"
    job.run(hour(2).id)
    assert archiver.etags() == before
    assert archiver.context.ledger.manifest(hour(2).id) == manifest


def test_an_archive_that_begins_in_the_middle_completes_no_hour_before(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 10, b"%d" % n) for n in range(25)])
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"100"), Record(0, DAY + 2 * HOUR, b"101")])
    start = hour(1).start.isoformat()
    archiver = Archiver(kafka, s3, tmp_path, [topic], source={"start": start})
    proofs = archiver.run(hour(2))
    assert archiver.lines()["date=2026-11-21/hour=00"] == [100]
    assert [p.hour_start for p in proofs] == [hour(1).start, hour(2).start]
    [earlier] = archiver.run(hour(0), "backfill")
    assert (earlier.hour_start, earlier.rows, earlier.late_rows) == (hour(0).start, 11, 0)


def test_an_empty_plan_needs_no_job_and_closes_its_hour(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    archiver = Archiver(kafka, s3, tmp_path, [topic])
    work = archiver.plan(hour(0))
    assert (work.runs, work.archive) == ((hour(0).id,), ())
    [proof] = archiver.finish(work)
    assert (proof.status, proof.rows) == ("complete", 0)
    assert archiver.objects() == {}


def test_case_12_an_added_partition_is_archived_from_its_first_record(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    archiver = Archiver(kafka, s3, tmp_path, [topic], source={"start": "latest"}, plain=True)
    archiver.run(hour(0))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    until(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 2)
    produce(kafka.bootstrap_servers, topic, [Record(1, DAY, b"1")])
    archiver.submitted(archiver.plan(hour(1)))
    assert archiver.lines() == {"date=2026-11-21/hour=00": [1]}


def test_a_backfill_takes_its_hours_offsets_and_never_moves_the_group(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 10, b"%d" % n) for n in range(60)])
    archiver = Archiver(kafka, s3, tmp_path, [topic])
    partition = TopicPartition(topic, 0)
    archiver.run(hour(2), "backfill")
    assert archiver.lines() == {"date=2026-11-21/hour=02": list(range(20, 30))}
    assert archiver.context.cluster.committed(archiver.archive.group, [partition]) == {partition: None}
    before = archiver.etags()
    archiver.run(hour(5))
    assert archiver.lines() == {f"date=2026-11-21/hour=0{h}": list(range(h * 10, h * 10 + 10)) for h in range(6)}
    assert before.items() <= archiver.etags().items()
    assert archiver.account(hour(5)) == {"archived": 50}
    assert archiver.context.cluster.committed(archiver.archive.group, [partition]) == {partition: 60}


def test_a_replay_keeps_what_kafka_no_longer_has(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"%d" % n) for n in range(30)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 10})
    archiver.run(hour(0))
    before = archiver.etags()
    delete_records(kafka.bootstrap_servers, topic, 15)
    archiver.run(hour(0))
    assert archiver.etags() == before
    archiver.context.store.delete(sorted(before)[1])
    with pytest.raises(IntegrityError, match=r"give other bytes now \(Kafka has removed records since"):
        archiver.job().run(hour(0).id)


def test_a_record_that_is_not_one_line_fails_with_its_offset_and_nothing_is_visible(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"good"), Record(0, DAY, b"two\nlines")])
    archiver = Archiver(kafka, s3, tmp_path, [topic])
    archiver.plan(hour(0))
    # What can be done about it comes from the task to the driver, too.
    with pytest.raises(PermanentError, match=r"offset 1: .*newline.*bad_record: dead_letter`.*bad_record: skip`"):
        archiver.job().run(hour(0).id)
    assert archiver.objects() == {}
    assert list(archiver.context.store.list_uploads("")) == []

"""The engine that fits a run: Spark's tasks, or the driver itself for a few records; the same bytes either way."""

from pathlib import Path

import pytest

from kafka_archiver.spark import engines
from kafka_archiver.spark.engine import SparkEngine
from kafka_archiver.writer.result import Limits
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("reader", "driver_records", "by"),
    [
        ("auto", 10, "driver"),
        ("auto", 9, "spark"),
        ("auto", 0, "spark"),
        ("native", 10, "spark"),
        ("spark", 99, "spark"),
    ],
)
def test_the_driver_writes_few_records_itself_unless_told_otherwise(
    kafka: Kafka,
    s3: S3,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: engines.Reader,
    driver_records: int,
    by: str,
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 5, b"%d" % n) for n in range(10)])
    archiver = Archiver(kafka, s3, tmp_path, [topic])
    plan = archiver.context.ledger.plan(archiver.plan(hour(1)).runs[0])
    assert plan is not None
    written = []
    monkeypatch.setattr(SparkEngine, "write", lambda *_: written.append("spark") or [])
    monkeypatch.setattr(engines.DriverEngine, "write", lambda *_: written.append("driver") or [])
    store, brokers = dict(archiver._outside().store), dict(archiver._outside().kafka)
    engine = engines.Engines(archiver.archive.store.url, store, brokers, Limits(), reader, driver_records)
    engine.write(plan, list(plan.chunks()), "fail")
    assert written == [by]


def test_the_driver_gives_the_bytes_that_spark_s_tasks_give_and_starts_no_spark(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    records = [Record(n % 2, DAY + n * HOUR // 20, b'{"n": %d}' % n) for n in range(60)]
    produce(kafka.bootstrap_servers, topic, records)
    settings = {"chunk_records": 7}
    spark = Archiver(kafka, s3, tmp_path, [topic], settings)
    driver = Archiver(kafka, s3, tmp_path, [topic], settings, driver_records=60)
    spark.submit(spark.plan(hour(3)).archive)
    output = driver.submit(driver.plan(hour(3)).archive)
    assert driver.etags() == spark.etags()
    assert "SparkContext" not in output
    assert output.count("records in") == len(list(range(0, 30, 7))) * 2 + 1, "a line a chunk, and one for the run"

"""Records that claim to be older than the calendar."""

from pathlib import Path

import pytest

from kafka_archiver.errors import PermanentError
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

# 1900-12-31T23:59:59.999Z, 1800, and 1336, when Julius's calendar counted.
OLD = (-2_177_452_800_001, -5_364_662_400_000, -20_000_000_000_000)


def test_a_time_before_1901_is_stored_as_it_is_or_not_at_all(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"0"), *(Record(0, time, b"1") for time in OLD)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"content": "record"}, source={"reader": "spark"})
    work = archiver.plan(hour(1))
    with pytest.raises(PermanentError, match=r"\[0\] offset \d has a time before 1901.*`source.reader: native`"):
        archiver.job().run(*work.archive)
    assert archiver.objects() == {}
    native = Archiver(kafka, s3, tmp_path, [topic], {"content": "record"}, source={"reader": "native"})
    native.run(hour(1))
    stored = {path: [line["timestamp"] for line in lines] for path, lines in native.lines().items()}
    nowhere = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
    assert stored == {"date=2026-11-21/hour=00": [DAY], nowhere: list(OLD)}

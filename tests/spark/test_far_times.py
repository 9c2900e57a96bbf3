"""Records that claim to be from a year that no calendar has."""

from pathlib import Path

import pytest

from kafka_archiver.errors import PermanentError
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

NOWHERE = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
# The last milliseconds that are microseconds in 64 bits, and the last that there are.
LAST_OF_SPARK, LAST = (2**63 - 1) // 1000, 2**63 - 1


def test_a_time_that_spark_cannot_count_is_stored_as_it_is_or_refused(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    settings = {"content": "record"}
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"0"), Record(0, LAST_OF_SPARK, b"1")])
    spark = Archiver(kafka, s3, tmp_path, [topic], settings, source={"reader": "spark"})
    spark.run(hour(1))
    assert [line["timestamp"] for line in spark.lines()[NOWHERE]] == [LAST_OF_SPARK]

    produce(kafka.bootstrap_servers, topic, [Record(0, LAST_OF_SPARK + 1, b"2"), Record(0, LAST, b"3")])
    work = spark.plan(hour(2))
    before = spark.etags()
    with pytest.raises(
        PermanentError, match=r"\[0\] offset 2 has the time 9223372036854776 ms, .*`source.reader: native`"
    ):
        spark.job().run(*work.archive)
    assert spark.etags() == before
    assert list(spark.context.store.list_uploads("")) == []

    native = Archiver(kafka, s3, tmp_path, [topic], settings, source={"reader": "native"})
    native.run(hour(2))
    times = [line["timestamp"] for line in native.lines()[NOWHERE]]
    assert times == [LAST_OF_SPARK, LAST_OF_SPARK + 1, LAST]

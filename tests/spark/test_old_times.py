"""Records that claim to be older than the calendar, and those that have more than one reader can read."""

from pathlib import Path

import pytest

from kafka_archiver.errors import PermanentError
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce, produce_raw

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

# 1900-12-31T23:59:59.999Z, 1800, and 1336, when Julius's calendar counted.
OLD = (-2_177_452_800_001, -5_364_662_400_000, -20_000_000_000_000)


NOWHERE = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
TODAY = "date=2026-11-21/hour=00"


def test_a_time_before_1901_is_stored_as_it_is_or_the_policy_decides(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"0"), *(Record(0, time, b"1") for time in OLD)])
    settings = {"content": "record"}
    archiver = Archiver(kafka, s3, tmp_path, [topic], settings, source={"reader": "spark"})
    work = archiver.plan(hour(1))
    with pytest.raises(
        PermanentError,
        match=r"\[0\] offset 1: its time is before 1901, .*`source.reader: native` stores it as it is; and 2 more .*"
        r"bad_record: dead_letter`.*bad_record: skip`",
    ):
        archiver.job().run(*work.archive)
    assert archiver.objects() == {}
    archiver.choose(bad_record="dead_letter")
    archiver.work(work)
    assert archiver.account(hour(1)) == {"archived": 1, "dead_lettered": 3}
    lines = archiver.lines()
    assert [line["offset"] for line in lines[TODAY]] == [0]
    [letters] = [some for path, some in lines.items() if path.endswith(NOWHERE)]
    # What Spark says of the time depends on where its worker is: it is not stored.
    assert [(x["offset"], x["timestamp"], x["value"]) for x in letters] == [(n, -1, "1") for n in (1, 2, 3)]
    assert all("does not give exactly" in x["error"] for x in letters)

    native = Archiver(kafka, s3, tmp_path, [topic], settings, source={"reader": "native"})
    native.run(hour(1))
    stored = {path: [line["timestamp"] for line in lines] for path, lines in native.lines().items()}
    assert stored == {TODAY: [DAY], NOWHERE: list(OLD)}


@pytest.mark.parametrize("content", ["value", "record"])
@pytest.mark.parametrize("reader", ["native", "spark"])
def test_a_record_that_neither_reader_can_read_whole_goes_where_the_policy_says(
    kafka: Kafka, s3: S3, tmp_path: Path, reader: str, content: str
) -> None:
    brokers = kafka.bootstrap_servers
    topic = new_topic(brokers)
    produce(brokers, topic, [Record(0, DAY, b"0")])
    produce_raw(brokers, topic, 0, OLD[0], b"1", [(b"fine", b"1"), (b"\xff\xfe", b"2")])
    produce(brokers, topic, [Record(0, DAY, b"2")])
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"content": content}, source={"reader": reader})
    work = archiver.plan(hour(1))
    job = archiver.job()
    if (reader, content) == ("native", "value"):
        # It needs no headers, and has the time.
        archiver.work(work)
        assert archiver.account(hour(1)) == {"archived": 3}
        return
    with pytest.raises(
        PermanentError, match=r"\[0\] offset 1: .*bad_record: dead_letter`.*bad_record: skip`"
    ) as caught:
        job.run(*work.archive)
    other = "source.reader: native" if reader == "spark" else "source.reader: spark"
    assert (other in str(caught.value)) == (content == "value"), "a way out, only where it is one"
    archiver.choose(bad_record="dead_letter")
    archiver.work(work)
    assert archiver.account(hour(1)) == {"archived": 2, "dead_lettered": 1}
    [letter] = [letter for path, some in archiver.lines().items() if path.endswith(NOWHERE) for letter in some]
    assert (letter["offset"], letter["value"]) == (1, "1")
    if reader == "native":
        assert (letter["timestamp"], letter["headers"]) == (OLD[0], [])
        assert "a header has a key that is not UTF-8" in letter["error"]
    else:
        assert letter["timestamp"] == -1
        assert letter["headers"] == [{"key": "fine", "value": "1"}, {"key": "\ufffd\ufffd", "value": "2"}]
        assert "its time is before 1901" in letter["error"]
    skipping = Archiver(kafka, s3, tmp_path, [topic], {"content": content}, {"bad_record": "skip"}, {"reader": reader})
    skipping.run(hour(1))
    assert skipping.account(hour(1)) == {"archived": 2, "filtered": 1}

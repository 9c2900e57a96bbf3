"""Records that claim to be older or newer than any calendar has, and those that one reader cannot read whole."""

import pytest

from kafka_archiver.messages.errors import PermanentError
from tests.support.archiver import Services, hour
from tests.support.topics import DAY, Record, produce_raw

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]

# 1900-12-31T23:59:59.999Z, 1800, and 1336, when Julius's calendar counted.
OLD = (-2_177_452_800_001, -5_364_662_400_000, -20_000_000_000_000)
# The last milliseconds that are microseconds in 64 bits, and the last that there are.
LAST_OF_SPARK, LAST = (2**63 - 1) // 1000, 2**63 - 1

NOWHERE = "date=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__"
TODAY = "date=2026-11-21/hour=00"


def test_a_time_before_1901_is_stored_as_it_is_or_the_policy_decides(services: Services) -> None:
    topic = services.topic([Record(0, DAY, b"0"), *(Record(0, time, b"1") for time in OLD)])
    settings = {"content": "record"}
    archiver = services.archive_of(topic, settings=settings, source={"reader": "spark"})
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

    native = services.archive_of(topic, settings=settings, source={"reader": "native"})
    native.run(hour(1))
    stored = {path: [line["timestamp"] for line in lines] for path, lines in native.lines().items()}
    assert stored == {TODAY: [DAY], NOWHERE: list(OLD)}


def test_a_time_that_spark_cannot_count_is_stored_as_it_is_or_refused(services: Services) -> None:
    settings = {"content": "record"}
    records = [Record(0, DAY, b"0"), Record(0, LAST_OF_SPARK, b"1")]
    spark = services.archive(records, settings=settings, source={"reader": "spark"})
    spark.run(hour(1))
    assert [line["timestamp"] for line in spark.lines()[NOWHERE]] == [LAST_OF_SPARK]

    spark.produce([Record(0, LAST_OF_SPARK + 1, b"2"), Record(0, LAST, b"3")])
    work = spark.plan(hour(2))
    before = spark.etags()
    with pytest.raises(
        PermanentError, match=r"\[0\] offset 2 has the time 9223372036854776 ms, .*`source.reader: native`"
    ):
        spark.job().run(*work.archive)
    assert spark.etags() == before
    assert spark.uploads() == []

    native = services.archive_of(*spark.topics, settings=settings, source={"reader": "native"})
    native.run(hour(2))
    times = [line["timestamp"] for line in native.lines()[NOWHERE]]
    assert times == [LAST_OF_SPARK, LAST_OF_SPARK + 1, LAST]


@pytest.mark.parametrize("content", ["value", "record"])
@pytest.mark.parametrize("reader", ["native", "spark"])
def test_a_record_that_neither_reader_can_read_whole_goes_where_the_policy_says(
    services: Services, reader: str, content: str
) -> None:
    options = {"settings": {"content": content}, "source": {"reader": reader}}
    archiver = services.archive([Record(0, DAY, b"0")], **options)
    [topic], brokers = archiver.topics, services.kafka.bootstrap_servers
    produce_raw(brokers, topic, 0, OLD[0], b"1", [(b"fine", b"1"), (b"\xff\xfe", b"2")])
    archiver.produce([Record(0, DAY, b"2")])
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
    skipping = services.archive_of(topic, policies={"bad_record": "skip"}, **options)
    skipping.run(hour(1))
    assert skipping.account(hour(1)) == {"archived": 2, "filtered": 1}

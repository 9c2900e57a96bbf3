"""The job on a real broker and a real S3 server: every record exactly once, in the hour of its timestamp."""

import pytest

from tests.support.archiver import Services, hour
from tests.support.kafka_twin import Entry
from tests.support.outcomes import Row
from tests.support.stored import as_json, as_row, hour_path, parse
from tests.support.topics import DAY, HOUR, Record, new_topic, produce

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
def test_odd_records_are_stored_whole_whatever_the_format(services: Services, format_name: str, codec: str) -> None:
    archiver = services.archive(ODD, settings={"format": format_name, "codec": codec, "content": "record"})
    archiver.run(hour(1))
    make = as_json if format_name == "jsonl" else as_row
    plan, manifest = archiver.planned(hour(1).id), archiver.manifest(hour(1))
    filed: dict[str, list[int]] = {}
    for offset, record in enumerate(ODD):
        filed.setdefault(hour_path(record.timestamp), []).append(offset)
    assert {entry.path for entry in manifest.objects} == set(filed)
    for entry in manifest.objects:
        entries = parse(archiver.context.store.get(entry.key) or b"", entry.key, plan)
        rows = [(o, ODD[o], Row(ODD[o].key, ODD[o].value, ODD[o].headers)) for o in filed[entry.path]]
        assert entries == [
            make(entry, o, Entry(stored_record.timestamp, stored_record, "committed"), row)
            for o, stored_record, row in rows
        ]
    assert archiver.account(hour(1)) == {"archived": len(ODD)}


@pytest.mark.parametrize("content", ["value", "record"])
def test_both_readers_give_the_same_bytes(services: Services, content: str) -> None:
    brokers = services.kafka.bootstrap_servers
    topic, other = new_topic(brokers, 2), new_topic(brokers, message_timestamp_type="LogAppendTime")
    produce(brokers, topic, [r for r in ODD if content == "record" or b"\n" not in (r.value or b"")])
    produce(brokers, topic, [Record(1, DAY + n % 2 * HOUR, b"%d" % n) for n in range(5000)], "commit")
    produce(brokers, topic, [Record(n % 2, DAY, b"no") for n in range(100)], "abort")
    produce(brokers, topic, [Record(1, DAY, b"%d" % n, headers=[("h", None)]) for n in range(3000)], "commit")
    produce(brokers, topic, [Record(n % 2, DAY, b"no") for n in range(100)], "abort")
    produce(brokers, other, [Record(0, DAY, b"appended")])
    settings = {"chunk_records": 1500, "content": content}
    archiver = services.archive_of(topic, other, settings=settings, source={"reader": "native"})
    archiver.run(hour(2))
    before, account = archiver.etags(), archiver.account(hour(2))
    assert account["archived"] == 8001 + len(ODD) - (content == "value")
    manifest = archiver.manifest(hour(2))
    # Without them this is no replay: the other reader has to find everything by itself.
    for document in "intent", "manifest":
        archiver.context.store.delete(f"_ledger/{archiver.archive.archive}/runs/{hour(2).id}/{document}.json")
    for key in before:
        archiver.context.store.delete(key)
    job = archiver.job()
    job.engine._reader = "spark"
    job.run(hour(2).id)
    assert archiver.etags() == before
    assert archiver.manifest(hour(2)) == manifest

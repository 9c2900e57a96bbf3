"""The doctor on a real broker and a real S3 server."""

import uuid
from dataclasses import replace

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.model.findings import Finding
from kafka_archiver.records.pipeline.transform.questions import SqlAnswer
from kafka_archiver.state.doctor import examine
from kafka_archiver.state.doctor.records import check_records
from kafka_archiver.state.doctor.store import check_store
from kafka_archiver.state.key_preview import preview_keys
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.store import open_store
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, Services, hour
from tests.support.avro_records import LocalRegistry, framed, record
from tests.support.topics import DAY, Record, new_topic

pytestmark = pytest.mark.contract


def checks(archiver: Archiver) -> list[Finding]:
    # By the clocks as they are: a doctor compares them.
    context = Context.open(archiver.archive, archiver._outside())
    context.cluster.timeout = archiver.context.cluster.timeout
    return list(examine(archiver.archive, context.cluster, context.store, Facts(dag_id="archive_a")))


def troubles(archiver: Archiver) -> list[str]:
    return [" ".join([f"{c.kind}: {c.observed}", *c.steps]) for c in checks(archiver) if c.severity == "problem"]


def test_a_sound_archive(services: Services) -> None:
    settings = {"retention_ms": str(7 * 86_400_000), "message_timestamp_after_max_ms": "3600000"}
    topic = new_topic(services.kafka.bootstrap_servers, 2, **settings)
    archiver = services.archive_of(topic)
    by_kind = {check.kind: check for check in checks(archiver)}
    assert {check.severity for check in by_kind.values()} == {"ok"}, by_kind
    assert "1 broker of cluster " in by_kind["brokers"].observed
    assert "2 partitions" in by_kind[f"topic {topic}"].observed
    assert by_kind[f"retention of {topic}"].observed == "records are kept for 7 days, a run is due every 1 hour"
    assert "CreateTime" in by_kind[f"timestamps of {topic}"].observed
    assert by_kind["multipart"].observed.endswith("the store checks and keeps the CRC-32 of every part and object")
    assert list(archiver.context.store.list("")) == []
    assert archiver.uploads() == []


def test_topics(services: Services) -> None:
    compacted = new_topic(services.kafka.bootstrap_servers, cleanup_policy="compact")
    short = new_topic(services.kafka.bootstrap_servers, retention_ms="3600000", retention_bytes="1000000")
    archiver = services.archive_of(compacted, short, "no-such-topic")
    states = {(check.kind, check.severity) for check in checks(archiver)}
    assert {
        ("topic no-such-topic", "problem"),
        (f"retention of {short}", "problem"),
        (f"retention of {short}", "warning"),
        (f"compaction of {compacted}", "warning"),
        ("group", "ok"),
    } <= states
    assert {name for name, state in states if state == "problem"} == {"topic no-such-topic", f"retention of {short}"}


def test_a_pattern(services: Services) -> None:
    tag = uuid.uuid4().hex[:8]
    new_topic(services.kafka.bootstrap_servers, name=f"{tag}.a")
    new_topic(services.kafka.bootstrap_servers, name=f"{tag}.b")
    source = {"topics": None, "pattern": rf"{tag}\..*"}
    [topics] = [c for c in checks(services.archive_of(source=source)) if c.kind == "topics"]
    assert (topics.severity, topics.observed) == ("ok", f"source.pattern matches 2: {tag}.a, {tag}.b")
    [missing] = troubles(services.archive_of(source={"topics": None, "pattern": f"{tag}"}))
    assert "matches source.pattern" in missing


def test_a_reader_is_told_what_it_may_not(s3: S3) -> None:
    store = open_store(f"s3://{s3.bucket}/{uuid.uuid4()}", s3.options(s3.reader))
    findings = list(check_store(store, "orders"))
    wrong = {check.kind: check.observed for check in findings if check.severity == "problem"}
    assert {"create-only", "put, get, head, list, delete", "multipart"} <= set(wrong)
    assert "need s3:PutObject" in wrong["create-only"]


def test_the_newest_records_are_decoded_as_a_run_would_do(services: Services) -> None:
    registry, topic = LocalRegistry(), services.topic()
    archiver = services.archive_of(topic, registry="http://nowhere", source={"value": {"decode": "avro"}})

    def records() -> Finding:
        [check] = check_records(replace(archiver.context, registry=registry.open))
        assert check.kind == f"records of {topic}"
        return check

    assert records().observed == "there are none"
    schema = record("Order", "n")
    good = Record(0, DAY, framed(100, schema, {"n": 1}))
    # The first one is not among the newest.
    archiver.produce([Record(0, DAY, b"old"), good, good, Record(0, DAY, None), good, good])
    missing = records()
    assert missing.severity == "problem"
    assert f"{topic}-value" in missing.observed
    registry.register(f"{topic}-value", schema)
    assert (records().severity, records().observed) == ("ok", "the newest 5 can be archived as the YAML says")
    archiver.produce([Record(0, DAY, good.value and good.value[:5])])
    bad = records()
    assert bad.severity == "problem"
    assert (
        f"1 of the newest 5 cannot be archived as the YAML says, the first one: {topic}[0] offset 6: " in bad.observed
    )
    assert "`source.value.decode` is avro, but the value cannot be decoded" in bad.observed
    assert "a run that reads such a record fails" in bad.means
    archiver.choose(bad_record="dead_letter")
    assert records().severity == "warning"
    assert list(check_records(services.archive_of(topic).context)) == []
    asking = services.archive_of(topic, more={"transform": {"where": "nope(offset)"}}).context
    asked = replace(asking, spark=lambda question: SqlAnswer(error=f"no {question.sql.where}"))
    assert [(check.kind, check.severity, check.observed) for check in check_records(asked)] == [
        (f"records of {topic}", "ok", "the newest 5 can be archived as the YAML says"),
        (f"SQL of {topic}", "problem", "no nope(offset)"),
    ]
    assert list(archiver.context.store.list("")) == []


def test_the_keys_that_a_form_previews_are_those_of_the_objects_that_a_run_writes(services: Services) -> None:
    layout = {"layout": {"path": "{topic}/{yyyy}/{MM}/{dd}/{HH}"}, "format": "avro", "content": "record"}
    archiver = services.archive([Record(0, DAY + 1_800_000 * n, b"%d" % n) for n in range(4)], settings=layout)
    previewed = {each.key: each.bytes for each in preview_keys(archiver.context)}
    assert list(archiver.context.store.list("")) == []
    archiver.run(hour(2), plain=True)
    assert previewed == {key: stat.size for key, stat in archiver.objects().items()}
    assert len(previewed) == 2

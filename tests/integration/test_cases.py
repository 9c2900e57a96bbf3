"""Cases that no other file has: settings that change, schemas that alternate, tails without records, retention that
overtakes a run, and a group that is forgotten. On the real broker and the real store.
"""

import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient

from kafka_archiver.config import Archive
from kafka_archiver.errors import PermanentError, PolicyError
from kafka_archiver.progress import Progress
from kafka_archiver.spark.failures import PERMANENT_EXIT, TRANSIENT_EXIT
from kafka_archiver.steps.archive import step as archive_step
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import Hold, Request, S3Proxy
from tests.support.topics import (
    DAY,
    HOUR,
    Record,
    delete_records,
    first_offset,
    new_compacted_topic,
    new_topic,
    produce,
)
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def archiver(kafka: Kafka, s3: S3, proxy: S3Proxy, tmp_path: Path) -> Archiver:
    """An archive of a topic with ten records in the first hour."""
    topic = new_topic(kafka.bootstrap_servers)
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 5}, proxy=proxy)
    add(archiver, range(10), 0)
    return archiver


def add(archiver: Archiver, numbers: range, hour_number: int) -> None:
    records = [Record(0, DAY + hour_number * HOUR + n, b"%d" % n) for n in numbers]
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], records)


def edit(archiver: Archiver, **store: Any) -> None:
    """Change the `store` of the YAML."""
    document = json.loads(archiver.archive.model_dump_json(by_alias=True))
    document["store"] |= store
    archiver.archive = Archive.model_validate(document)
    archiver.context = replace(archiver.context, archive=archiver.archive)


def command(archiver: Archiver, policy: str, choice: str) -> str:
    """What a message must say."""
    conf = json.dumps({"policies": {policy: choice}})
    return f"`airflow dags trigger archive_{archiver.archive.archive} --conf '{conf}'`"


def progress(archiver: Archiver) -> Progress:
    found = archiver.context.ledger.progress()
    assert found is not None
    return found


def status(archiver: Archiver, number: int) -> str:
    proof = archiver.context.ledger.hour(DAY // HOUR + number)
    assert proof is not None
    return proof.status


def test_case_5_a_second_attempt_under_another_yaml_writes_what_the_plan_says(
    archiver: Archiver, proxy: S3Proxy
) -> None:
    work = archiver.plan(hour(0))
    intents = itertools.count()

    def refuse_the_second_intent(request: Request, done: bool) -> int | None:
        """That all is visible: without it another attempt writes all of it again."""
        if done or request.verb != "put" or not request.key.endswith("intent.json"):
            return None
        return 403 if next(intents) else None

    proxy.rule = refuse_the_second_intent
    with pytest.raises(PermanentError):
        archiver.job(plain=True).run(work.archive[0])
    before = archiver.etags()
    assert {key.rsplit("+", 1)[1] for key in before} == {f"{start:020d}.jsonl.gz" for start in (0, 5)}

    proxy.rule = lambda _, __: None
    edit(archiver, chunk_records=7, codec="none", content="record")
    again = archiver.plan(hour(0))
    assert again == work
    archiver.submit(again.archive)
    archiver.finish(again)
    assert archiver.etags() == before
    assert archiver.values() == list(range(10))
    # What is planned from now on is as the YAML says.
    add(archiver, range(10, 20), 1)
    archiver.run(hour(1), plain=True)
    new = {key.rsplit("+", 1)[1] for key in set(archiver.etags()) - set(before)}
    assert new == {f"{start:020d}.jsonl" for start in (10, 17)}


def test_case_5_code_that_writes_other_bytes_refuses_an_older_plan(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = archiver.plan(hour(0))
    monkeypatch.setattr(archive_step, "ENCODING", 4)
    told = f"run {hour(0).id} was planned for encoding 3, this code writes 4: it would not give the same bytes"
    with pytest.raises(PermanentError, match=told):
        archiver.job(plain=True).run(work.archive[0])
    assert archiver.objects() == {}
    monkeypatch.undo()
    archiver.work(work, plain=True)
    assert archiver.values() == list(range(10))


SHAPES: tuple[Callable[[int], Any], ...] = (
    lambda n: {"n": n, "name": "x"},
    lambda n: {"n": str(n), "name": {"first": [n]}},
    lambda n: [n, None],
    lambda n: {"other": n, f"field {n}": n},
    lambda n: n,
)


@pytest.mark.parametrize(("format_name", "plain"), [("jsonl", True), ("avro", True), ("parquet", False)])
def test_case_6_schemas_that_alternate_record_by_record_make_no_more_objects(
    kafka: Kafka, s3: S3, tmp_path: Path, format_name: str, plain: bool
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    written = [json.dumps(SHAPES[n % len(SHAPES)](n)).encode() for n in range(600)]
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n % 3 * HOUR, value) for n, value in enumerate(written)])
    content = "value" if format_name == "jsonl" else "record"
    settings = {"format": format_name, "codec": "none", "content": content, "chunk_records": 300}
    source = {"value": {"decode": "json"}}
    archiver = Archiver(kafka, s3, tmp_path, [topic], settings, source=source, plain=plain)
    archiver.submitted(archiver.plan(hour(2)))
    # One for each of two chunks and three hours, as if all records were alike.
    assert len(archiver.objects()) == 2 * 3
    found: list[bytes] = []
    for key in archiver.objects():
        data = archiver.context.store.get(key)
        assert data is not None
        if format_name == "jsonl":
            found += data.splitlines()
        elif format_name == "avro":
            found += [dict(row)["value"] for row in fastavro.reader(io.BytesIO(data))]  # type: ignore[arg-type]
        else:
            found += pq.read_table(io.BytesIO(data)).column("value").to_pylist()
    assert sorted(found) == sorted(written)


def test_case_9_a_tail_of_control_records_or_compacted_away_is_absent_and_not_lost(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    brokers = kafka.bootstrap_servers
    aborted = new_topic(brokers)
    produce(brokers, aborted, [Record(0, DAY + n, b"%d" % n) for n in range(3)], "commit")
    for _ in range(3):
        produce(brokers, aborted, [Record(0, DAY, b"no")] * 2, "abort")
    compacted = new_compacted_topic(brokers)
    keys = [b"%d" % n for n in range(5)] + [b"same"] * 5
    produce(brokers, compacted, [Record(0, DAY + n, b"%d" % n, key) for n, key in enumerate(keys)])
    archiver = Archiver(kafka, s3, tmp_path, [aborted, compacted], {"chunk_records": 5})
    work = archiver.plan(hour(0))
    turns = itertools.count()

    def tail_is_compacted_away() -> bool:
        # A segment is rolled, and may be compacted then, when a record is segment.ms younger than its first.
        produce(brokers, compacted, [Record(0, DAY + HOUR + next(turns) * 1000, b"9", b"same")])
        return first_offset(brokers, compacted, 5) >= 10

    until(tail_is_compacted_away, 90, every=0.5)
    archiver.submit(work.archive)
    proofs = archiver.finish(work)
    manifest = archiver.context.ledger.manifest(hour(0).id)
    assert manifest is not None
    absent = {
        topic: [r for c in manifest.chunks if c.topic == topic for r in c.absent_ranges] for topic in archiver.topics
    }
    # Markers of one commit and three aborts, with two aborted records before each of the latter.
    assert absent == {aborted: [(3, 5), (5, 10), (10, 13)], compacted: [(5, 10)]}
    assert archiver.account(hour(0)) == {"archived": 3 + 5, "absent": 10 + 5}
    assert [(p.hour_start, p.status, p.rows) for p in proofs] == [(hour(0).start, "complete", 8)]
    assert progress(archiver).lost == 0
    assert archiver.values() == sorted([*range(3), *range(5)])


OVERTAKEN = {
    "before planning": "7 offsets of .* are gone: the archive stands at 10, but retention has removed",
    "between plan and read": r"retention removed the records of .* \[10, 15\) before 17 since the plan",
    "during the read": r"retention removed the records of .* \[10, 15\) before 17 since the plan",
}


@pytest.mark.parametrize("when", OVERTAKEN)
def test_case_10_what_retention_overtakes_is_lost_only_when_told_to_and_shown_for_ever(
    archiver: Archiver, proxy: S3Proxy, when: str
) -> None:
    archiver.run(hour(0), plain=True)
    add(archiver, range(10, 20), 1)
    before = archiver.etags()
    if when == "before planning":
        overtake(archiver)
        with pytest.raises(PolicyError) as refused:
            archiver.plan(hour(1))
        told = str(refused.value)
    else:
        work = archiver.plan(hour(1))
        if when == "during the read":
            read_and_overtake(archiver, proxy, work.archive[0])
        else:
            overtake(archiver)
        archiver.plain = True
        told = archiver.submit(work.archive, expect=PERMANENT_EXIT).splitlines()[-1]
        assert "PolicyError: " in told
    assert re.search(OVERTAKEN[when], told)
    assert command(archiver, "lost_offsets", "record_loss") in told
    assert archiver.etags() == before
    assert list(archiver.context.store.list_uploads("")) == []

    archiver.choose(lost_offsets="record_loss")
    archiver.submitted(archiver.plan(hour(1)))
    archiver.choose(lost_offsets="fail")
    assert archiver.account(hour(1)) == {"archived": 3, "lost": 7}
    manifest = archiver.context.ledger.manifest(hour(1).id)
    assert manifest is not None
    lost = {n for c in manifest.chunks for start, end in c.lost_ranges for n in range(start, end)}
    assert lost == set(range(10, 17))
    for later in (2, 3):
        add(archiver, range(later * 10, later * 10 + 10), later)
        archiver.run(hour(later), plain=True)
    assert archiver.values() == [*range(10), *range(17, 40)]
    assert [status(archiver, n) for n in range(4)] == ["complete", "incomplete", "complete", "complete"]
    assert progress(archiver).lost == 7
    assert archiver.group() == [40]


def overtake(archiver: Archiver) -> None:
    """One chunk of the second hour is gone, and a part of the next."""
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 17)


def read_and_overtake(archiver: Archiver, proxy: S3Proxy, run: str) -> None:
    """A job that has read its first chunk when retention takes that and the beginning of the second."""
    proxy.rule = held = Hold("start")
    job = archiver.start([run])
    try:
        assert held.came.wait(100)
        overtake(archiver)
    finally:
        held.gone.set()
        output, _ = job.communicate(timeout=100)
    assert job.returncode == TRANSIENT_EXIT, output[-3000:]
    assert "retention overtook the run while it was reading; the next attempt reads" in output.splitlines()[-1]


def test_case_13_a_group_that_is_forgotten_goes_on_where_the_ledger_ends(archiver: Archiver) -> None:
    archiver.plain = True
    archiver.run(hour(0), plain=True)
    before = archiver.etags()
    add(archiver, range(10, 20), 1)
    forget(archiver)
    archiver.choose(missing_group="fail")
    with pytest.raises(PolicyError, match="the ledger says it is archived up to 10") as told:
        archiver.plan(hour(1))
    assert command(archiver, "missing_group", "resume_from_ledger") in str(told.value)
    # Chosen once: the next run finds the group where this one has put it.
    archiver.choose(missing_group="resume_from_ledger")
    archiver.submitted(archiver.plan(hour(1)))
    archiver.choose(missing_group="fail")
    plan = archiver.context.ledger.plan(hour(1).id)
    assert plan is not None
    assert plan.partitions[0].ranges == ((10, 20),)
    assert plan.partitions[0].decided[0].startswith("missing_group: resume_from_ledger: ")
    assert archiver.group() == [20]
    # A plan that is not finished does not ask the group.
    add(archiver, range(20, 30), 2)
    work = archiver.plan(hour(2))
    forget(archiver)
    archiver.submitted(work)
    assert archiver.group() == [30]
    assert before.items() <= archiver.etags().items()
    assert archiver.values() == list(range(30))
    assert [status(archiver, n) for n in range(3)] == ["complete"] * 3


def forget(archiver: Archiver) -> None:
    """What the brokers do to a group that was not used for long enough."""
    admin = AdminClient({"bootstrap.servers": archiver.kafka.bootstrap_servers})
    admin.delete_consumer_groups([archiver.archive.group])[archiver.archive.group].result(30)
    assert archiver.group() == [None]

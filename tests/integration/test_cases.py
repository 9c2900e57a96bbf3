"""Cases that no other file has: settings that change, schemas that alternate, tails without records, and retention
that overtakes a run. On the real broker and the real store.
"""

import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_archiver.config import Archive
from kafka_archiver.errors import PermanentError
from kafka_archiver.progress import Progress
from kafka_archiver.spark.failures import PERMANENT_EXIT, TRANSIENT_EXIT
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


SHAPES: tuple[Callable[[int], Any], ...] = (
    lambda n: {"n": n, "name": "x"},
    lambda n: {"n": str(n), "name": {"first": [n]}},
    lambda n: [n, None],
    lambda n: {"other": n, f"field {n}": n},
    lambda n: n,
)


def test_case_6_schemas_that_alternate_record_by_record_make_no_more_objects(
    kafka: Kafka, s3: S3, tmp_path: Path
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    written = [json.dumps(SHAPES[n % len(SHAPES)](n)).encode() for n in range(600)]
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n % 3 * HOUR, value) for n, value in enumerate(written)])
    settings = {"format": "parquet", "codec": "none", "content": "record", "chunk_records": 300}
    archiver = Archiver(kafka, s3, tmp_path, [topic], settings, source={"value": {"decode": "json"}})
    archiver.submitted(archiver.plan(hour(2)))
    # One for each of two chunks and three hours, as if all records were alike.
    assert len(archiver.objects()) == 2 * 3
    tables = [pq.read_table(io.BytesIO(archiver.context.store.get(key) or b"")) for key in archiver.objects()]
    assert sorted(value for table in tables for value in table.column("value").to_pylist()) == sorted(written)


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


@pytest.mark.parametrize("during", [False, True], ids=["between plan and read", "during the read"])
def test_case_10_what_retention_overtakes_is_lost_only_when_told_to_and_shown_for_ever(
    archiver: Archiver, proxy: S3Proxy, during: bool
) -> None:
    archiver.run(hour(0), plain=True)
    add(archiver, range(10, 20), 1)
    before = archiver.etags()
    work = archiver.plan(hour(1))
    if during:
        read_and_overtake(archiver, proxy, work.archive[0])
    else:
        overtake(archiver)
    archiver.plain = True
    told = archiver.submit(work.archive, expect=PERMANENT_EXIT).splitlines()[-1]
    assert re.search(r"PolicyError: .*retention removed the records of .* \[10, 15\) before 17 since the plan", told)
    choice = '{"policies": {"lost_offsets": "record_loss"}}'
    assert f"`airflow dags trigger archive_{archiver.archive.archive} --conf '{choice}'`" in told
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
    add(archiver, range(20, 30), 2)
    archiver.run(hour(2), plain=True)
    assert archiver.values() == [*range(10), *range(17, 30)]
    assert [status(archiver, n) for n in range(3)] == ["complete", "incomplete", "complete"]
    assert progress(archiver).lost == 7
    assert archiver.group() == [30]


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
    assert "retention overtook the run while it was read; the next attempt sees what is left" in output.splitlines()[-1]

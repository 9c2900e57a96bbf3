"""Cases that no other file has: settings that change, schemas that alternate, tails without records, and retention
that overtakes a run. On the real broker and the real store.
"""

import io
import itertools
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_archiver.config import Archive
from kafka_archiver.errors import PermanentError
from kafka_archiver.progress import Progress
from kafka_archiver.ranges import TopicPartition
from kafka_archiver.spark.failures import PERMANENT_EXIT, TRANSIENT_EXIT
from tests.support.archiver import Archiver, Services, hour
from tests.support.kafka_mirror import KafkaMirror
from tests.support.proxy import Hold, Request, S3Proxy
from tests.support.topics import DAY, HOUR, Record
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def archiver(services: Services, proxy: S3Proxy) -> Archiver:
    """An archive of a topic with ten records in the first hour."""
    return services.archive(records(range(10), 0), settings={"chunk_records": 5}, proxy=proxy)


def records(numbers: range, hour_number: int) -> list[Record]:
    return [Record(0, DAY + hour_number * HOUR + n, b"%d" % n) for n in numbers]


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
    archiver.submitted(again)
    assert archiver.etags() == before
    assert archiver.values() == list(range(10))
    # What is planned from now on is as the YAML says.
    archiver.produce(records(range(10, 20), 1))
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


def test_case_6_schemas_that_alternate_record_by_record_make_no_more_objects(services: Services) -> None:
    written = [json.dumps(SHAPES[n % len(SHAPES)](n)).encode() for n in range(600)]
    records = [Record(0, DAY + n % 3 * HOUR, value) for n, value in enumerate(written)]
    settings = {"format": "parquet", "codec": "none", "content": "record", "chunk_records": 300}
    archiver = services.archive(records, settings=settings, source={"value": {"decode": "json"}})
    archiver.submitted(archiver.plan(hour(2)))
    # One for each of two chunks and three hours, as if all records were alike.
    assert len(archiver.objects()) == 2 * 3
    tables = [pq.read_table(io.BytesIO(archiver.context.store.get(key) or b"")) for key in archiver.objects()]
    assert sorted(value for table in tables for value in table.column("value").to_pylist()) == sorted(written)


def test_case_9_a_tail_of_control_records_or_compacted_away_is_absent_and_not_lost(services: Services) -> None:
    kafka, topic = KafkaMirror(services.kafka.bootstrap_servers, lambda: 0), f"t-{uuid.uuid4().hex[:12]}"
    name = TopicPartition(topic, 0)
    kafka.create_topic(topic)
    kafka.produce(topic, [Record(0, DAY + n, b"%d" % n, b"%d" % min(n, 3)) for n in range(8)])
    for _ in range(3):
        kafka.produce(topic, [Record(0, DAY, b"no")] * 2, "aborted")
        kafka.end_transaction("aborted", commit=False)
    archiver = services.archive_of(topic, settings={"chunk_records": 8})
    work = archiver.plan(hour(0))
    kafka.produce(topic, [Record(0, DAY + HOUR, b"8", b"3")])
    until(lambda: kafka.compact(name, 0) or kafka.log(name).entries[7].compacted, 90)
    [proof] = archiver.work(work, plain=True)
    # Five records of the same key, as many as were written again; two aborted ones and a marker, three times.
    assert [c.absent_ranges for c in archiver.manifest(hour(0)).chunks] == [((3, 8),), ((8, 16),), ((16, 17),)]
    assert archiver.account(hour(0)) == {"archived": 3, "absent": 5 + 9}
    assert (proof.hour_start, proof.status, proof.rows) == (hour(0).start, "complete", 3)
    assert progress(archiver).lost == 0
    assert archiver.values() == [0, 1, 2]


@pytest.mark.parametrize("during", [False, True], ids=["between plan and read", "during the read"])
def test_case_10_what_retention_overtakes_is_lost_only_when_told_to_and_shown_for_ever(
    archiver: Archiver, proxy: S3Proxy, during: bool
) -> None:
    archiver.run(hour(0), plain=True)
    archiver.produce(records(range(10, 20), 1))
    before = archiver.etags()
    work = archiver.plan(hour(1))
    if during:
        read_and_overtake(archiver, proxy, work.archive[0])
    else:
        archiver.delete_records(17)
    archiver.plain = True
    told = archiver.submit(work.archive, expect=PERMANENT_EXIT).splitlines()[-1]
    assert re.search(r"PolicyError: .*retention removed the records of .* \[10, 15\) before 17 since the plan", told)
    choice = '{"policies": {"lost_offsets": "record_loss"}}'
    assert f"`airflow dags trigger archive_{archiver.archive.archive} --conf '{choice}'`" in told
    assert archiver.etags() == before
    assert archiver.uploads() == []

    archiver.choose(lost_offsets="record_loss")
    archiver.submitted(archiver.plan(hour(1)))
    archiver.choose(lost_offsets="fail")
    assert archiver.account(hour(1)) == {"archived": 3, "lost": 7}
    lost = {n for c in archiver.manifest(hour(1)).chunks for start, end in c.lost_ranges for n in range(start, end)}
    assert lost == set(range(10, 17))
    archiver.produce(records(range(20, 30), 2))
    archiver.run(hour(2), plain=True)
    assert archiver.values() == [*range(10), *range(17, 30)]
    assert [status(archiver, n) for n in range(3)] == ["complete", "incomplete", "complete"]
    assert progress(archiver).lost == 7
    assert archiver.group() == [30]


def read_and_overtake(archiver: Archiver, proxy: S3Proxy, run: str) -> None:
    """A job that has read its first chunk when retention takes that and the beginning of the second."""
    proxy.rule = held = Hold("start")
    job = archiver.start([run])
    try:
        assert held.came.wait(100)
        archiver.delete_records(17)
    finally:
        held.gone.set()
        output, _ = job.communicate(timeout=100)
    assert job.returncode == TRANSIENT_EXIT, output[-3000:]
    assert "retention overtook the run while it was reading; the next attempt reads" in output.splitlines()[-1]

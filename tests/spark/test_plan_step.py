"""Which intervals get a plan, and what happens when somebody interferes with those that have one."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_archiver.errors import IntegrityError, PolicyError
from kafka_archiver.intervals import Interval
from kafka_archiver.manifest import Intent
from kafka_archiver.steps.plan import plan
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, HOUR, Record, delete_records, new_topic, produce

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.usefixtures("spark")]


@pytest.fixture
def archiver(kafka: Kafka, s3: S3, tmp_path: Path) -> Archiver:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"%d" % n) for n in range(20)])
    return Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 10}, {"lost_offsets": "record_loss"})


def test_an_interval_that_has_not_ended_is_refused(archiver: Archiver) -> None:
    with pytest.raises(PolicyError, match="has not ended yet"):
        plan(replace(archiver.context, clock=lambda: hour(5).start), hour(5), "scheduled")
    assert archiver.context.ledger.runs() == {}


def test_an_interval_that_starts_like_a_planned_one_and_ends_elsewhere_is_refused(archiver: Archiver) -> None:
    archiver.plan(hour(0))
    with pytest.raises(PolicyError, match="the schedule was changed"):
        archiver.plan(Interval(start=hour(0).start, end=hour(0).start + timedelta(days=1)))


def test_of_two_unfinished_runs_both_are_finished_whichever_is_cleared_and_its_own_is_the_last(
    archiver: Archiver,
) -> None:
    archiver.plan(hour(0))
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], [Record(0, DAY + HOUR, b"x")])
    archiver.plan(hour(1))
    assert archiver.plan(hour(1)).runs == (hour(0).id, hour(1).id)
    cleared = archiver.plan(hour(0))
    assert cleared.runs == (hour(1).id, hour(0).id)
    proofs = archiver.work(cleared, plain=True)
    # Hours are proved in the order of the line nevertheless.
    assert {(p.hour_start, p.status) for p in proofs} == {(hour(n).start, "complete") for n in (0, 1)}
    assert len(archiver.etags()) == 3
    assert archiver.plan(hour(2)).runs == (hour(2).id,)


def test_a_plan_that_somebody_deleted_is_written_again_as_it_stands_in_the_line(archiver: Archiver) -> None:
    archiver.run(hour(0))
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], [Record(0, DAY + HOUR, b"x")])
    archiver.plan(hour(1))
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], [Record(0, DAY + 2 * HOUR, b"x")])
    archiver.plan(hour(2))
    planned = archiver.context.ledger.plan(hour(1).id)
    archiver.context.store.delete(f"_ledger/{archiver.archive.archive}/runs/{hour(1).id}/plan.json")
    assert archiver.plan(hour(3)).runs == tuple(hour(number).id for number in (1, 2, 3))
    assert archiver.context.ledger.plan(hour(1).id) == planned


def test_an_object_of_an_earlier_attempt_is_not_replaced_by_less(archiver: Archiver) -> None:
    work = archiver.plan(hour(0))
    archiver.job().run(hour(0).id)
    # What a crash right before manifest.json leaves.
    before = archiver.etags()
    ledger = archiver.context.ledger
    archiver.context.store.delete(f"_ledger/{archiver.archive.archive}/runs/{hour(0).id}/manifest.json")
    intent = Intent(archive=archiver.archive.archive, run=hour(0).id, attempt=1, keys=tuple(sorted(before)))
    assert ledger.put_intent(intent, ledger.intent(hour(0).id))
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 15)
    with pytest.raises(IntegrityError, match="writing the chunk again would lose records"):
        archiver.job().run(work.archive[0])
    assert archiver.etags() == before


def test_what_an_earlier_attempt_made_visible_is_kept_when_kafka_has_removed_records_since(archiver: Archiver) -> None:
    work = archiver.plan(hour(0))
    archiver.job(plain=True).run(hour(0).id)
    # What a crash right after the first object leaves.
    before, ledger = archiver.etags(), archiver.context.ledger
    archiver.context.store.delete(f"_ledger/{archiver.archive.archive}/runs/{hour(0).id}/manifest.json")
    stored = ledger.intent(hour(0).id)
    assert stored.document
    assert ledger.put_intent(stored.document.model_copy(update={"done": False}), stored)
    second = max(before)
    archiver.context.store.delete(second)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 15)
    archiver.work(work, plain=True)
    assert archiver.account(hour(0)) == {"archived": 15, "lost": 5}
    after = archiver.etags()
    assert after.keys() == before.keys()
    assert after[min(before)] == before[min(before)]
    assert list(archiver.context.store.list_uploads("")) == []

"""Repair on the real broker and the real store: what can be brought back is, what cannot is lost by name, all else
stays, and the archive goes on.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.audit.report import Report
from kafka_archiver.errors import ConfigError, IntegrityError, PermanentError
from kafka_archiver.keys import line_document, run_document
from kafka_archiver.steps.auditing import audit
from kafka_archiver.steps.rebuild import rebuild_run
from kafka_archiver.steps.repair import Repairs, derive, find, lose, restore, write_again
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
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

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
def archiver(kafka: Kafka, s3: S3, tmp_path: Path) -> Archiver:
    """Two settled runs of ten records in each of two hours, a late one, and one of a third hour."""
    topic = new_topic(kafka.bootstrap_servers)
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 6})
    add(archiver, range(20), lambda n: n * HOUR // 10)
    archiver.run(hour(1), plain=True)
    add(archiver, range(20, 22), lambda n: (n - 20) * 2 * HOUR)
    archiver.run(hour(2), plain=True)
    return archiver


def add(archiver: Archiver, numbers: range, after: Callable[[int], int]) -> None:
    """Records, each so many milliseconds after midnight."""
    records = [Record(0, DAY + after(n), b"%d" % n) for n in numbers]
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], records)


def audited(archiver: Archiver, deep: bool = False) -> Report:
    return audit(archiver.archive, archiver.context.store, archiver.now[0], deep)


def repair(archiver: Archiver, *given_up: str) -> Repairs:
    """What the command does; its DAG runs happen here."""
    context = archiver.context
    found = find(context, audited(archiver), given_up)
    for key in found.restored:
        restore(context.ledger, key)
    if found.derived:
        derive(context.ledger)
    for run, entries in found.lost.items():
        lose(context, run, [entry.key for entry in entries])
    for run in found.anew:
        archiver.work(rebuild_run(context, run), plain=True)
    if found.again:
        archiver.work(write_again(context, list(found.again)), plain=True)
    return found


def documents(archiver: Archiver) -> dict[str, bytes]:
    """The ledger."""
    store = archiver.context.store
    return {s.key: store.get(s.key) or b"" for s in store.list(f"_ledger/{archiver.archive.archive}/")}


def key_of(archiver: Archiver, start: int, hour_number: int) -> str:
    """The object of a chunk and an hour."""
    [found] = [k for k in archiver.objects() if f"/hour=0{hour_number}/" in k and f"+{start:020d}." in k]
    return found


def status(archiver: Archiver) -> list[str]:
    """Of each hour of the day, as far as there are proofs."""
    ledger = archiver.context.ledger
    return [found.status for h in ledger.hours() if (found := ledger.hour(h))]


def test_what_kafka_has_is_written_again_with_the_same_bytes(archiver: Archiver) -> None:
    before, ledger = archiver.etags(), documents(archiver)
    gone, damaged = key_of(archiver, 6, 1), key_of(archiver, 20, 2)
    archiver.context.store.delete(gone)
    archiver.context.store.put(damaged, b"somebody's")
    assert {(f.kind, f.where) for f in audited(archiver).damage} == {
        ("object-missing", gone),
        ("object-changed", damaged),
    }
    found = find(archiver.context, audited(archiver))
    assert {run: [entry.key for entry in some] for run, some in found.again.items()} == {
        hour(1).id: [gone],
        hour(2).id: [damaged],
    }
    assert (found.lost, found.anew, found.derived, found.left) == ({}, {}, (), ())
    assert documents(archiver) == ledger, "to look changes nothing"
    repair(archiver)
    assert archiver.etags() == before
    assert audited(archiver, deep=True).findings == ()
    assert not repair(archiver)


def test_what_kafka_does_not_have_is_lost_by_name_and_all_else_stays(archiver: Archiver) -> None:
    before = archiver.etags()
    gone = key_of(archiver, 6, 0)
    archiver.context.store.delete(gone)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 15)
    found = repair(archiver)
    assert ({run: [entry.key for entry in some] for run, some in found.lost.items()}, found.lost_rows) == (
        {hour(1).id: [gone]},
        4,
    )
    assert archiver.etags() == {key: etag for key, etag in before.items() if key != gone}
    manifest = archiver.context.ledger.manifest(f"{hour(1).id}+r1")
    assert manifest
    assert {fate: count for fate, count in manifest.account.items() if count} == {"archived": 16, "lost": 4}
    assert [entry.key for entry in manifest.lost_objects] == [gone]
    assert status(archiver) == ["incomplete", "complete", "complete"]
    proof = archiver.context.ledger.hour(DAY // HOUR)
    assert proof
    assert (proof.rows, proof.lost_rows, proof.reason) == (7, 4, "objects with 4 rows are gone for good")
    report = audited(archiver, deep=True)
    assert (report.verdict, report.counts.lost) == ("clean", 4)
    assert [(f.kind, f.severity) for f in report.findings] == [("lost", "warning")]
    assert not repair(archiver), "once is enough"
    # The archive goes on, and says for ever what it lacks.
    add(archiver, range(22, 25), lambda _: 3 * HOUR)
    archiver.run(hour(3), plain=True)
    assert status(archiver) == ["incomplete", "complete", "complete", "complete"]
    assert [(f.kind, f.severity) for f in audited(archiver).findings] == [("lost", "warning")]
    progress = archiver.context.ledger.progress()
    assert progress
    assert progress.lost == 4


def test_of_two_objects_one_is_written_again_and_one_is_lost_and_another_is_lost_later(archiver: Archiver) -> None:
    before = archiver.etags()
    first, again, later = key_of(archiver, 0, 0), key_of(archiver, 12, 1), key_of(archiver, 18, 1)
    for key in first, again:
        archiver.context.store.delete(key)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 12)
    repair(archiver)
    assert archiver.etags() == {key: etag for key, etag in before.items() if key != first}
    archiver.context.store.delete(later)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 19)
    repair(archiver)
    assert archiver.etags() == {key: etag for key, etag in before.items() if key not in (first, later)}
    report = audited(archiver, deep=True)
    assert (report.verdict, report.counts.lost) == ("clean", 8)
    assert status(archiver) == ["incomplete", "incomplete", "complete"]


@pytest.mark.parametrize(
    ("settings", "told"), [({"format": "papyrus"}, "papyrus"), ({"encoding": 1}, "planned for encoding 1")]
)
def test_a_run_in_a_format_or_encoding_that_this_release_does_not_write_is_planned_anew(
    archiver: Archiver, settings: dict[str, Any], told: str
) -> None:
    before, lines = archiver.etags(), archiver.lines()
    add(archiver, range(22, 25), lambda _: 3 * HOUR)
    archiver.plan(hour(3))
    store, name = archiver.context.store, archiver.archive.archive
    plan = archiver.context.ledger.plan(hour(3).id)
    assert plan
    other = plan.model_copy(update={"settings": plan.settings.model_copy(update=settings)})
    for key in line_document(name, plan.number), run_document(name, plan.run, "plan"):
        store.put(key, other.to_json())
    with pytest.raises((PermanentError, ConfigError), match=told) as stopped:
        archiver.run(hour(4), plain=True)
    assert f"`airflow archive rebuild {name} --run {hour(3).id}`" in str(stopped.value)
    found = repair(archiver)
    assert list(found.anew) == [hour(3).id]
    assert told in found.anew[hour(3).id]
    archiver.run(hour(4), plain=True)
    assert before.items() <= archiver.etags().items()
    assert archiver.lines() == lines | {"date=2026-11-21/hour=03": [22, 23, 24]}
    assert status(archiver) == ["complete"] * 5
    assert audited(archiver, deep=True).findings == ()


def test_a_run_that_said_what_it_wrote_and_lost_it_before_it_was_final_ends_with_the_loss_on_record(
    archiver: Archiver,
) -> None:
    before = archiver.etags()
    add(archiver, range(22, 30), lambda _: 3 * HOUR)
    work = archiver.plan(hour(3))
    archiver.job(plain=True).run(work.archive[0])
    gone, kept = key_of(archiver, 22, 3), key_of(archiver, 28, 3)
    archiver.context.store.delete(gone)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 26)
    with pytest.raises(IntegrityError, match="is not what its manifest says"):
        archiver.finish(work)
    with pytest.raises(IntegrityError, match=r"give other bytes now \(Kafka has removed records since") as told:
        archiver.run(hour(4), plain=True)
    assert f"`airflow archive repair {archiver.archive.archive} --lost {gone}`" in str(told.value)
    found = repair(archiver)
    assert [entry.key for entry in found.lost[hour(3).id]] == [gone]
    archiver.run(hour(4), plain=True)
    assert archiver.etags().keys() == {*before, kept}
    assert status(archiver) == ["complete", "complete", "complete", "incomplete", "complete"]
    report = audited(archiver, deep=True)
    assert (report.verdict, report.counts.lost) == ("clean", 6)
    made = archiver.context.ledger.commit(hour(3).id)
    assert made
    assert (made.outcome, made.by) == ("replaced", f"{hour(3).id}+r1")
    # Whoever is still at work on it is harmless, and the group is where the line ends.
    archiver.finish(work)
    assert archiver.plan(hour(5)).runs == (hour(5).id,)


def test_a_plan_that_is_gone_is_copied_from_the_line(archiver: Archiver) -> None:
    before = documents(archiver)
    key = run_document(archiver.archive.archive, hour(1).id, "plan")
    archiver.context.store.delete(key)
    assert repair(archiver).restored == (key,)
    assert documents(archiver) == before
    assert audited(archiver).findings == ()


@pytest.mark.slow
def test_what_is_read_again_with_other_bytes_is_given_up_by_name_alone(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    brokers = kafka.bootstrap_servers
    topic = new_compacted_topic(brokers)
    keys = [b"same", b"other"] * 3
    produce(brokers, topic, [Record(0, DAY + n, b"%d" % n, key) for n, key in enumerate(keys)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 3})
    archiver.run(hour(0), plain=True)
    before = archiver.etags()
    turns = iter(range(1000))

    def is_compacted() -> bool:
        # A segment is rolled, and may be compacted then, when a record is segment.ms younger than its first.
        produce(brokers, topic, [Record(0, DAY + HOUR + next(turns) * 1000, b"9", b"same")])
        return first_offset(brokers, topic, 0) > 2

    until(is_compacted, 90, every=0.5)
    first, second = sorted(before)
    archiver.context.store.delete(first)
    # Its offsets are in the log; the records are not.
    with pytest.raises(IntegrityError, match="Kafka does not have its records any more") as told:
        repair(archiver)
    assert f"`airflow archive repair {archiver.archive.archive} --lost {first}`" in str(told.value)
    with pytest.raises(ConfigError, match="is neither missing nor damaged"):
        repair(archiver, second)
    found = repair(archiver, first)
    assert [entry.key for entry in found.lost[hour(0).id]] == [first]
    assert archiver.etags() == {second: before[second]}
    report = audited(archiver, deep=True)
    assert (report.verdict, report.counts.lost) == ("clean", 3)
    assert status(archiver)[0] == "incomplete"
    archiver.run(hour(1), plain=True)
    assert audited(archiver, deep=True).verdict == "clean"

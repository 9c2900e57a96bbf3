"""A rebuild replaces what it read again, whole, and never loses what only the archive still has."""

from datetime import timedelta
from pathlib import Path

import pytest

from kafka_archiver.errors import IntegrityError, PermanentError, PolicyError
from kafka_archiver.steps.clean_up import leftovers, remove
from kafka_archiver.steps.rebuild import rebuild_hour, rebuild_run
from scripts.stack.kafka import Kafka
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import Request, S3Proxy
from tests.support.topics import DAY, HOUR, Record, delete_records, new_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture
def archiver(kafka: Kafka, s3: S3, tmp_path: Path) -> Archiver:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n * HOUR // 10, b"%d" % n) for n in range(20)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], {"chunk_records": 6})
    archiver.run(hour(1), plain=True)
    # A late record of hour 0, and one of hour 2.
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"20"), Record(0, DAY + 2 * HOUR, b"21")])
    archiver.run(hour(2), plain=True)
    return archiver


def test_an_hour_is_rebuilt_with_every_run_that_has_a_part_of_it(archiver: Archiver) -> None:
    before, lines = archiver.objects(), archiver.lines()
    ledger, cluster = archiver.context.ledger, archiver.context.cluster
    old = ledger.hour(int(DAY // HOUR))
    assert old is not None
    work = rebuild_hour(archiver.context, hour(0).start)
    assert work.runs == (f"{hour(1).id}+r1", f"{hour(2).id}+r1")
    job = archiver.job(plain=True)
    for run in work.archive:
        job.run(run)
    assert before.items() <= archiver.objects().items(), "until the proofs name the new ones, the old ones are there"
    assert ledger.hour(int(DAY // HOUR)) == old
    progress = ledger.progress()
    archiver.finish(work)
    assert archiver.lines() == lines
    assert all("+r1.jsonl.gz" in key for key in archiver.objects())
    proof = ledger.hour(int(DAY // HOUR))
    assert proof is not None
    assert [(c.run, c.late, c.rows) for c in proof.runs] == [(f"{c.run}+r1", c.late, c.rows) for c in old.runs]
    assert (proof.status, proof.complete_as_of, proof.closed_by) == ("complete", old.complete_as_of, old.closed_by)
    after = ledger.progress()
    assert progress is not None
    assert after is not None
    assert (after.partitions, after.closed_until) == (progress.partitions, progress.closed_until)
    # The interval's run is the rebuilt one from now on, and the schedule goes on as if nothing had been.
    etags = archiver.etags()
    archiver.run(hour(1), plain=True)
    assert archiver.etags() == etags
    assert archiver.plan(hour(3)).runs == (hour(3).id,)
    assert cluster.members(archiver.archive.group) == []
    archiver.work(rebuild_run(archiver.context, hour(1).id), plain=True)
    assert any("+r2.jsonl.gz" in key for key in archiver.objects())
    assert archiver.lines() == lines


def test_what_is_superseded_is_kept_by_choice(archiver: Archiver) -> None:
    before = archiver.etags()
    archiver.work(rebuild_run(archiver.context, hour(1).id, keep=True), plain=True)
    assert before.items() < archiver.etags().items()


def test_a_rebuild_that_was_stopped_goes_on(archiver: Archiver) -> None:
    first = rebuild_run(archiver.context, hour(1).id)
    again = rebuild_run(archiver.context, hour(1).id)
    assert again == first
    archiver.work(again, plain=True)
    assert rebuild_run(archiver.context, hour(1).id).runs == (f"{hour(1).id}+r2",)


def test_a_rebuild_that_was_stopped_is_given_up_by_the_next_run(archiver: Archiver) -> None:
    lines = archiver.lines()
    first = rebuild_run(archiver.context, hour(1).id)
    archiver.job(plain=True).run(first.archive[0])
    assert archiver.plan(hour(3)).runs == (hour(3).id,)
    archiver.run(hour(3), plain=True)
    made = archiver.context.ledger.commit(first.runs[-1])
    assert made
    assert made.outcome == "given_up"
    # Who goes on with it changes nothing any more, and is told so.
    with pytest.raises(PermanentError, match=r"\+r1 of archive \S+ was given up by the next run"):
        archiver.finish(first)
    again = rebuild_run(archiver.context, hour(1).id)
    assert again.runs == (f"{hour(1).id}+r2",)
    archiver.work(again, plain=True)
    left = leftovers(archiver.context.ledger, archiver.now[0] + timedelta(minutes=1))
    assert {key for key in archiver.objects() if "+r1." in key} == {item.key for item in left}
    remove(archiver.context.ledger, left)
    assert archiver.lines() == lines


def test_a_rebuild_killed_between_its_removals_is_finished_by_the_next_attempt(archiver: Archiver, s3: S3) -> None:
    lines = archiver.lines()
    work = rebuild_run(archiver.context, hour(1).id)
    archiver.job(plain=True).run(work.archive[0])
    proxy = S3Proxy(s3.endpoint_url)

    def refuse(request: Request, done: bool) -> int | None:
        return 403 if request.verb == "delete" and request.number == 2 and not done else None

    proxy.rule = refuse
    with proxy.serving(), pytest.raises(Exception, match=r"403|denied|refused"):
        archiver.behind(proxy).finish(work)
    archiver.finish(work)
    assert archiver.lines() == lines
    assert not any(key.endswith("+00000000000000000000.jsonl.gz") for key in archiver.objects())


def test_a_run_that_kafka_does_not_have_any_more_stays_as_it_is(archiver: Archiver) -> None:
    before = archiver.etags()
    work = rebuild_run(archiver.context, hour(1).id)
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 3)
    archiver.choose(lost_offsets="record_loss")
    with pytest.raises(PolicyError, match=r"cannot be rebuilt; its stored objects stay as they are"):
        archiver.job(plain=True).run(work.archive[0])
    assert archiver.etags() == before


def test_a_rebuild_of_what_kafka_does_not_have_any_more_is_not_begun(archiver: Archiver) -> None:
    delete_records(archiver.kafka.bootstrap_servers, archiver.topics[0], 3)
    with pytest.raises(PolicyError, match=r"from offset 0, but Kafka has removed everything before 3"):
        rebuild_run(archiver.context, hour(1).id)
    assert archiver.context.ledger.runs(hour(1).id).keys() == {hour(1).id}


def test_records_that_were_compacted_since_are_not_given_up(kafka: Kafka, s3: S3, tmp_path: Path) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    records = [Record(0, DAY, b"%d" % n) for n in range(3)]
    produce(kafka.bootstrap_servers, topic, records)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY, b"3")], transaction="abort")
    archiver = Archiver(kafka, s3, tmp_path, [topic], source={"isolation": "read_uncommitted"})
    archiver.run(hour(0), plain=True)
    before = archiver.etags()
    # Another isolation sees fewer of the same offsets, as compaction would leave them.
    archiver.archive = archiver.archive.model_copy(
        update={"source": archiver.archive.source.model_copy(update={"isolation": "read_committed"})}
    )
    archiver.choose()
    work = rebuild_run(archiver.context, hour(0).id)
    with pytest.raises(IntegrityError, match=r"1 records of .* less than were archived"):
        archiver.job(plain=True).run(work.archive[0])
    assert archiver.etags() == before


def test_a_run_that_is_not_final_is_taken_over_by_its_rebuild(archiver: Archiver) -> None:
    before, lines = archiver.etags(), archiver.lines()
    produce(archiver.kafka.bootstrap_servers, archiver.topics[0], [Record(0, DAY + 3 * HOUR, b"9")])
    planned = archiver.plan(hour(3))
    archiver.job(plain=True).run(planned.archive[0])
    archiver.work(rebuild_run(archiver.context, hour(3).id), plain=True)
    made = archiver.context.ledger.commit(hour(3).id)
    assert made
    assert (made.outcome, made.by) == ("replaced", f"{hour(3).id}+r1")
    assert archiver.lines() == lines | {"date=2026-11-21/hour=03": [9]}
    # Whoever is still at work on the run that was replaced is harmless.
    archiver.finish(planned)
    now = archiver.etags()
    assert before.items() <= now.items()
    assert [key.rpartition("+")[2] for key in now if key not in before] == ["r1.jsonl.gz"]
    assert archiver.plan(hour(4)).runs == (hour(4).id,)

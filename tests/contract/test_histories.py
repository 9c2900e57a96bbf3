"""Histories that once went wrong: what is stored afterwards, what the proofs say, and where the group stands."""

import gzip
import uuid
from datetime import timedelta

import pytest

from kafka_archiver.context.history import last_runs, run_details
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, PolicyError
from kafka_archiver.model.keys import line_document, run_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.close_hours import ClosedHours, close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import PlannedWork, plan
from kafka_archiver.work.plan.idle_policies import refuse_idle_choices
from kafka_archiver.work.repair import restore_document
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def lake(end: int = 4, start: int = 0, **policies: str) -> Lake:
    return Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(start, end)}, policies=policies)


def tell(of: Lake, number: int) -> tuple[str, int]:
    proof = of.proof(number)
    return proof.status, proof.rows


def planned(of: Lake, number: int) -> list[tuple[int, int, int, tuple[Range, ...]]]:
    return [(p.start, p.end, p.generation, p.offset_ranges) for p in of.planned(hour(number).id).partitions]


def test_a_choice_for_a_run_that_is_final_is_refused_and_says_when_it_will_decide() -> None:
    one = lake(6)
    one.run(2, until="written")
    loss = {"lost_offsets": "record_loss"}
    # As long as it is not final, it may lose something yet.
    refuse_idle_choices(one.context, hour(2), loss)
    one.run(2)
    with pytest.raises(ConfigError, match=r"decide nothing: .*02:00:00Z replays its plan\. Trigger .* without a date"):
        refuse_idle_choices(one.context, hour(2), loss)
    refuse_idle_choices(one.context, hour(2), {"lost_offsets": "fail"})
    one.logs[P0] = Range(5, 9)
    refuse_idle_choices(one.context, hour(3), loss)
    one.choose(**loss)
    one.run(3)
    # A retry of the run that chose is no mistake.
    refuse_idle_choices(one.context, hour(3), loss)
    # Neither is a choice for a run that waits to be finished.
    one.run(1, "backfill", until="planned")
    refuse_idle_choices(one.context, hour(3), {"bad_record": "dead_letter"})


def test_what_was_chosen_while_a_run_was_read_is_no_idle_choice_either() -> None:
    one = lake(6)
    one.run(2, until="planned")
    one.choose(bad_record="skip")
    one.run(2)
    refuse_idle_choices(one.context, hour(2), {"bad_record": "skip"})
    with pytest.raises(ConfigError, match="decide nothing"):
        refuse_idle_choices(one.context, hour(2), {"bad_record": "fail"})


def test_a_superseded_run_that_is_cleared_does_not_come_back_beside_its_rebuild() -> None:
    one = lake()
    run = one.run(3)
    one.rebuild(run)
    before, proof = one.stored(), tell(one, 1)
    one.job().run(run)
    verify(one.context, [run])
    commit(one.context, [run])
    assert close_hours(one.context, [run]) == ClosedHours([], [])
    assert (one.stored(), tell(one, 1)) == (before, proof)
    assert one.audit().verdict == "clean"


def test_a_log_that_was_truncated_is_not_taken_for_the_one_that_a_run_was_read_from() -> None:
    one = lake(6, recreated_topic="new_generation")
    run = one.run(6)
    before = {key: one.store.get(key) for key in one.stored()}
    one.logs[P0] = Range(0, 3)
    with pytest.raises(PolicyError, match="is no longer the one that the run was read from"):
        one.rebuild(run)
    one.run(7)
    one.logs[P0] = Range(0, 8)
    for offset in range(3, 8):
        one.odd[(P0, offset)] = {"value": b'{"other": %d}' % offset}
    one.run(8)
    with pytest.raises(PolicyError, match="is no longer the one that the run was read from"):
        one.rebuild(run)
    assert {key: one.store.get(key) for key in before} == before
    assert any(b"other" in gzip.decompress(one.store.get(key) or b"") for key in one.stored() if key not in before)


@pytest.mark.parametrize("moved_group", ["fail", "new_generation"])
def test_a_replay_of_an_old_run_puts_an_expired_group_where_the_archive_stands(moved_group: str) -> None:
    one = lake(moved_group=moved_group)
    one.run(3)
    one.logs[P0] = Range(0, 8)
    one.run(7)
    one.brokers.group.clear()
    one.run(3)
    assert one.brokers.group == {P0: 8}
    one.logs[P0] = Range(0, 10)
    one.run(9)
    assert planned(one, 9) == [(8, 10, 0, (Range(8, 10),))]


def test_no_backfill_completes_an_hour_that_lost_records_however_far_retention_went_since() -> None:
    one = lake(2, lost_offsets="record_loss")
    one.run(1)
    one.logs[P0] = Range(6, 10)
    one.run(9)
    one.logs[P0] = Range(8, 12)
    one.run(11)
    one.run(3, "backfill")
    assert tell(one, 3) == ("incomplete", 0)


def test_no_backfill_completes_an_hour_before_an_archive_that_began_in_the_middle() -> None:
    one = lake(8)
    one.brokers.group[P0] = 6
    one.run(7)
    one.logs[P0] = Range(7, 10)
    one.run(9)
    one.run(3, "backfill")
    assert tell(one, 3) == ("incomplete", 0)


def test_no_backfill_completes_an_hour_of_a_log_that_was_given_up() -> None:
    one = lake(2, recreated_topic="new_generation")
    one.run(1)
    one.brokers.ids["orders"] = "new"
    one.run(5)
    one.run(4, "backfill")
    assert tell(one, 4) == ("incomplete", 0)


def test_a_loss_that_a_run_has_just_met_keeps_a_backfill_behind_it_from_completing_its_hour() -> None:
    one = lake(2, lost_offsets="record_loss")
    one.run(1)
    one.logs[P0] = Range(0, 10)
    one.run(9, until="planned")
    one.logs[P0] = Range(8, 10)
    one.run(4, "backfill")
    assert tell(one, 4) == ("incomplete", 0)
    assert one.progress.lost == 6


def test_one_odd_time_behind_a_loss_completes_nothing() -> None:
    one = lake(2, lost_offsets="record_loss")
    one.run(1)
    one.odd[(P0, 6)] = {"timestamp": 0}
    one.logs[P0] = Range(6, 10)
    one.run(9)
    assert [tell(one, n)[0] for n in range(2, 7)] == ["incomplete"] * 5


def test_a_choice_to_follow_the_ledger_holds_for_the_runs_after_it() -> None:
    one = lake()
    one.run(3)
    one.logs[P0] = Range(0, 6)
    one.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        one.run(4)
    one.brokers.group[P0] = 6
    one.choose(moved_group="follow_ledger")
    one.logs[P0] = Range(0, 5)
    one.run(4)
    assert one.brokers.group == {P0: 5}
    one.choose(moved_group="fail")
    one.logs[P0] = Range(0, 8)
    one.run(5)
    assert planned(one, 5) == [(5, 8, 0, (Range(5, 8),))]


def test_a_rebuild_that_was_begun_goes_on_or_is_given_up_for_one_with_other_wishes() -> None:
    one = lake()
    run = one.run(3)
    begun = one.rebuild(run, until="planned")
    assert one.rebuild(run, until="planned") == begun
    other = one.rebuild(run, keep=True)
    assert (begun, other) == (f"{run}+r1", f"{run}+r2")
    ended = one.commit(begun)
    assert (ended.outcome, ended.by) == ("given_up", "the next run")
    assert len(one.stored()) == 8


def test_a_rebuild_that_was_given_up_keeps_its_name_though_its_plan_is_deleted() -> None:
    one = lake()
    run = one.run(3)
    begun = one.rebuild(run, until="planned")
    one.run(4)
    one.store.delete(run_document(one.name, begun, "plan"))
    assert one.rebuild(run) == f"{run}+r2"
    restore_document(one.ledger, run_document(one.name, begun, "plan"))
    assert one.audit().verdict == "clean"


def test_what_a_generation_has_of_the_same_log_is_not_archived_again_by_a_backfill() -> None:
    one = lake(6, moved_group="new_generation")
    one.run(5)
    one.logs[P0] = Range(0, 9)
    one.brokers.group[P0] = 7
    one.run(8)
    one.run(2, "backfill")
    assert tell(one, 2)[1] == 1
    # A group wound back on purpose archives again what it was wound back over, and nothing else.
    one.brokers.group[P0] = 8
    one.run(9)
    assert planned(one, 9) == [(8, 9, 2, (Range(8, 9),))]


@pytest.mark.parametrize("recreated_topic", ["fail", "new_generation"])
def test_an_open_transaction_is_no_truncation(recreated_topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = lake(moved_group="new_generation", recreated_topic=recreated_topic)
    one.run(3)
    one.logs[P0] = Range(0, 9)
    ends = one.brokers.log_ends
    monkeypatch.setattr(
        one.brokers,
        "log_ends",
        lambda names, isolation: {
            n: 7 if isolation == "read_committed" else e for n, e in ends(names, isolation).items()
        },
    )
    one.brokers.group[P0] = 9
    one.run(8)
    assert planned(one, 8) == [(9, 9, 1, ())]


def test_a_topic_of_a_pattern_made_again_with_fewer_partitions_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = lake(3, recreated_topic="new_generation")
    one.logs[P1] = Range(0, 3)
    source = one.archive.source.model_copy(update={"topics": None, "pattern": "ord.*"})
    one.configure(one.archive.model_copy(update={"source": source}))
    topics = one.brokers.topics
    monkeypatch.setattr(one.brokers, "topics", lambda _: topics({"orders"}))
    one.run(3)
    one.brokers.ids["orders"] = "new"
    del one.logs[P1]
    one.logs[P0] = Range(0, 2)
    one.run(4)
    one.choose(recreated_topic="fail")
    one.run(5)
    report = one.audit(cluster=one.brokers)
    assert (report.verdict, [f.kind for f in report.findings]) == ("clean", ["topic-gone"])


def test_a_log_truncated_below_what_is_planned_is_lost_only_when_told_to() -> None:
    one = lake()
    one.run(3)
    one.logs[P0] = Range(0, 8)
    one.run(7, until="planned")
    one.logs[P0] = Range(0, 6)
    one.choose(recreated_topic="new_generation")
    with pytest.raises(PolicyError, match=r"ends at 6 now.*truncated.*record_loss"):
        one.run(8)
    one.choose(lost_offsets="record_loss")
    one.run(8)
    manifest = one.manifest(hour(7).id)
    assert (manifest.account["archived"], manifest.account["lost"]) == (2, 2)


def test_a_backfill_of_a_truncated_log_does_not_call_new_records_archived() -> None:
    one = lake(6)
    one.run(5)
    one.logs[P0] = Range(0, 3)
    with pytest.raises(PolicyError, match="past the end of the log at 3"):
        plan(one.context, hour(1), "backfill")


def test_hours_are_not_proved_by_what_is_not_committed() -> None:
    one = lake()
    run = one.run(3, until="written")
    with pytest.raises(IntegrityError, match="is not committed"):
        close_hours(one.context, [run])


def test_a_manifest_that_was_edited_is_not_taken_for_objects_that_are_wrong() -> None:
    one = lake()
    run = one.run(3)
    manifest = one.manifest(run)
    edited = manifest.objects[0].model_copy(update={"rows": 7})
    document = manifest.model_copy(update={"objects": (edited, *manifest.objects[1:])})
    one.store.put(f"_ledger/{one.name}/runs/{run}/manifest.json", document.to_json())
    with pytest.raises(IntegrityError, match=r"is not the one that was committed .*restore it"):
        verify(one.context, [run])


def test_a_plan_that_was_deleted_is_named_with_the_command_that_says_what_else_is_missing() -> None:
    one = lake(6)
    for number in (1, 2, 3):
        one.run(number)
    one.store.delete(line_document(one.name, 2))
    with pytest.raises(ConfigError, match=f"place 2 of .* is empty: .*`airflow archive audit {one.name}` says what"):
        last_runs(one.ledger, 3)


def test_a_run_in_full_has_its_documents_and_the_account_of_each_partition() -> None:
    one = lake(5, start=2)
    one.run(1)
    found = run_details(one.ledger, "last")
    assert (found.run, found.state, found.store) == (hour(1).id, "settled", one.store.url)
    assert found.plan == one.planned(found.run)
    assert (found.manifest, found.commit) == (one.manifest(found.run), one.commit(found.run))
    [account] = found.accounts
    assert {**one.manifest(found.run).account, "topic": "orders", "partition": 0} == account.model_dump()
    assert account.offsets == found.plan.count
    [summary] = last_runs(one.ledger, 1)
    assert (summary.run, summary.interval_start, summary.offsets) == (found.run, hour(1).start, found.plan.count)


@pytest.mark.parametrize("moved_group", ["fail", "new_generation"])
def test_a_group_that_stands_where_an_unfinished_run_starts_was_moved_by_nobody(moved_group: str) -> None:
    one = lake(1, moved_group=moved_group)
    # A connector was here before: the archive begins where its group stands, and the first run takes nothing.
    one.brokers.group[P0] = 1
    one.run(1)
    one.logs[P0] = Range(0, 3)
    one.run(2, until="planned")
    one.logs[P0] = Range(0, 4)
    one.run(3)
    assert planned(one, 3) == [(3, 4, 0, (Range(3, 4),))]
    assert len(one.stored()) == 3


def test_a_group_that_was_put_back_as_the_message_says_was_moved_by_nobody_either() -> None:
    one = lake(1)
    one.run(1)
    one.logs[P0] = Range(0, 2)
    one.run(2, until="planned")
    one.brokers.group[P0] = 0
    with pytest.raises(PolicyError, match=r"put the group back with `kafka-consumer-groups .*--to-offset 2 "):
        one.run(3)
    one.brokers.group[P0] = 2
    one.logs[P0] = Range(0, 3)
    one.run(3, until="planned")
    one.logs[P0] = Range(0, 4)
    one.run(4)
    assert [planned(one, number) for number in (3, 4)] == [
        [(2, 3, 0, (Range(2, 3),))],
        [(3, 4, 0, (Range(3, 4),))],
    ]


def test_a_run_that_is_taken_over_behind_a_new_generation_of_its_log_is_not_archived_again() -> None:
    one = lake(2)
    one.run(1)
    one.logs[P0] = Range(0, 5)
    run = one.run(4, until="planned")
    one.logs[P0], one.brokers.group[P0] = Range(0, 7), 6
    one.choose(moved_group="new_generation")
    one.run(6, until="planned")
    one.rebuild(run)
    one.choose(moved_group="fail")
    one.run(7)
    assert [(p.generation, p.covered, p.earlier) for p in one.progress.partitions] == [(1, ((6, 7),), ((0, 5),))]
    for number in (2, 3, 4, 5):
        one.run(number, "backfill") if number != 4 else None
    assert [planned(one, number)[0][3] for number in (2, 3, 5)] == [(), (), (Range(5, 6),)]
    assert tell(one, 4) == ("complete", 1)
    assert one.audit().verdict == "clean"


def test_a_topic_that_only_a_backfill_has_seen_does_not_vanish_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bills = TopicPartition("order-bills", 0)
    one = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2), bills: Range(0, 1)})
    source = one.archive.source.model_copy(update={"topics": None, "pattern": "order.*"})
    one.configure(one.archive.model_copy(update={"source": source}))
    topics = one.brokers.topics
    monkeypatch.setattr(one.brokers, "topics", lambda _: topics({name.topic for name in one.logs}))
    one.run(0, "backfill")
    # Describe is revoked, and a record comes that nobody sees.
    del one.logs[bills]
    with pytest.raises(PolicyError, match=r"topics order-bills match source\.pattern and were archived before"):
        one.run(1)


def test_nothing_is_said_of_a_moment_before_a_loss_though_the_clocks_went_back_since() -> None:
    one = lake(2, lost_offsets="record_loss")
    one.run(0)
    one.logs[P0] = Range(0, 7)
    one.run(5, until="planned")
    one.logs[P0] = Range(5, 7)
    # Both clocks are put back by an hour.
    one.now -= timedelta(hours=1)
    one.finish(PlannedWork((hour(5).id,), (hour(5).id,)))
    progress = one.progress
    assert (progress.as_of, progress.marks) == (hour(0).end + timedelta(minutes=5), ())


def test_nothing_is_said_of_a_moment_before_retention_had_what_nobody_had_asked_about() -> None:
    one = lake(3)
    one.run(6, "backfill")
    one.logs[P0] = Range(2, 4)
    one.now = hour(3).end
    one.finish(plan(one.context, hour(3), "scheduled"))
    progress = one.ledger.progress()
    assert progress is not None
    assert (progress.as_of, progress.marks, progress.whole_from) == (hour(3).end, (), hour(4).end)


@pytest.mark.parametrize("choice", ["follow_ledger", "new_generation"])
def test_what_a_plan_has_decided_about_the_group_is_not_asked_again_while_its_run_is_not_finished(choice: str) -> None:
    one = lake(2)
    one.run(1)
    one.logs[P0] = Range(0, 6)
    one.odd[P0, 3] = {"value": b"bad\nvalue"}
    with pytest.raises(PermanentError, match="newline"):
        one.run(5)
    one.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        one.run(6)
    one.choose(moved_group=choice)
    with pytest.raises(PermanentError, match="newline"):
        one.run(6)
    # The next message is followed, and that one alone.
    one.choose(moved_group="fail", bad_record="skip")
    one.run(7)
    one.choose(bad_record="fail")
    one.run(8)
    assert one.brokers.group == {P0: 6}
    assert one.audit().verdict == "clean"
    # What somebody does afterwards is asked about.
    one.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        one.run(9)

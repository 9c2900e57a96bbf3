"""Histories that once went wrong: what is stored afterwards, what the proofs say, and where the group stands."""

import gzip
import uuid
from datetime import timedelta

import pytest

from kafka_archiver.context.history import last_runs, run_details
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, PolicyError
from kafka_archiver.model.object_keys import line_document, run_document
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


def new_lake(end: int = 4, start: int = 0, **policies: str) -> Lake:
    return Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(start, end)}, policies=policies)


def tell(of: Lake, number: int) -> tuple[str, int]:
    proof = of.proof(number)
    return proof.status, proof.rows


def planned(of: Lake, number: int) -> list[tuple[int, int, int, tuple[Range, ...]]]:
    return [(p.start, p.end, p.generation, p.offset_ranges) for p in of.planned(hour(number).id).partitions]


def test_a_choice_for_a_run_that_is_final_is_refused_and_says_when_it_will_decide() -> None:
    lake = new_lake(6)
    lake.run(2, until="written")
    loss = {"lost_offsets": "record_loss"}
    # As long as it is not final, it may lose something yet.
    refuse_idle_choices(lake.context, hour(2), loss)
    lake.run(2)
    with pytest.raises(ConfigError, match=r"decide nothing: .*02:00:00Z replays its plan\. Trigger .* without a date"):
        refuse_idle_choices(lake.context, hour(2), loss)
    refuse_idle_choices(lake.context, hour(2), {"lost_offsets": "fail"})
    lake.logs[P0] = Range(5, 9)
    refuse_idle_choices(lake.context, hour(3), loss)
    lake.choose(**loss)
    lake.run(3)
    # A retry of the run that chose is no mistake.
    refuse_idle_choices(lake.context, hour(3), loss)
    # Neither is a choice for a run that waits to be finished.
    lake.run(1, "backfill", until="planned")
    refuse_idle_choices(lake.context, hour(3), {"bad_record": "dead_letter"})


def test_what_was_chosen_while_a_run_was_read_is_no_idle_choice_either() -> None:
    lake = new_lake(6)
    lake.run(2, until="planned")
    lake.choose(bad_record="skip")
    lake.run(2)
    refuse_idle_choices(lake.context, hour(2), {"bad_record": "skip"})
    with pytest.raises(ConfigError, match="decide nothing"):
        refuse_idle_choices(lake.context, hour(2), {"bad_record": "fail"})


def test_a_superseded_run_that_is_cleared_does_not_come_back_beside_its_rebuild() -> None:
    lake = new_lake()
    run = lake.run(3)
    lake.rebuild(run)
    before, proof = lake.stored(), tell(lake, 1)
    lake.job().run(run)
    verify(lake.context, [run])
    commit(lake.context, [run])
    assert close_hours(lake.context, [run]) == ClosedHours([], [])
    assert (lake.stored(), tell(lake, 1)) == (before, proof)
    assert lake.audit().verdict == "clean"


def test_a_log_that_was_truncated_is_not_taken_for_the_one_that_a_run_was_read_from() -> None:
    lake = new_lake(6, recreated_topic="new_generation")
    run = lake.run(6)
    before = {key: lake.store.get(key) for key in lake.stored()}
    lake.logs[P0] = Range(0, 3)
    with pytest.raises(PolicyError, match="is no longer the one that the run was read from"):
        lake.rebuild(run)
    lake.run(7)
    lake.logs[P0] = Range(0, 8)
    for offset in range(3, 8):
        lake.odd[(P0, offset)] = {"value": b'{"other": %d}' % offset}
    lake.run(8)
    with pytest.raises(PolicyError, match="is no longer the one that the run was read from"):
        lake.rebuild(run)
    assert {key: lake.store.get(key) for key in before} == before
    assert any(b"other" in gzip.decompress(lake.store.get(key) or b"") for key in lake.stored() if key not in before)


@pytest.mark.parametrize("moved_group", ["fail", "new_generation"])
def test_a_replay_of_an_old_run_puts_an_expired_group_where_the_archive_stands(moved_group: str) -> None:
    lake = new_lake(moved_group=moved_group)
    lake.run(3)
    lake.logs[P0] = Range(0, 8)
    lake.run(7)
    lake.brokers.group.clear()
    lake.run(3)
    assert lake.brokers.group == {P0: 8}
    lake.logs[P0] = Range(0, 10)
    lake.run(9)
    assert planned(lake, 9) == [(8, 10, 0, (Range(8, 10),))]


def test_no_backfill_completes_an_hour_that_lost_records_however_far_retention_went_since() -> None:
    lake = new_lake(2, lost_offsets="record_loss")
    lake.run(1)
    lake.logs[P0] = Range(6, 10)
    lake.run(9)
    lake.logs[P0] = Range(8, 12)
    lake.run(11)
    lake.run(3, "backfill")
    assert tell(lake, 3) == ("incomplete", 0)


def test_no_backfill_completes_an_hour_before_an_archive_that_began_in_the_middle() -> None:
    lake = new_lake(8)
    lake.brokers.group[P0] = 6
    lake.run(7)
    lake.logs[P0] = Range(7, 10)
    lake.run(9)
    lake.run(3, "backfill")
    assert tell(lake, 3) == ("incomplete", 0)


def test_no_backfill_completes_an_hour_of_a_log_that_was_given_up() -> None:
    lake = new_lake(2, recreated_topic="new_generation")
    lake.run(1)
    lake.brokers.ids["orders"] = "new"
    lake.run(5)
    lake.run(4, "backfill")
    assert tell(lake, 4) == ("incomplete", 0)


def test_a_loss_that_a_run_has_just_met_keeps_a_backfill_behind_it_from_completing_its_hour() -> None:
    lake = new_lake(2, lost_offsets="record_loss")
    lake.run(1)
    lake.logs[P0] = Range(0, 10)
    lake.run(9, until="planned")
    lake.logs[P0] = Range(8, 10)
    lake.run(4, "backfill")
    assert tell(lake, 4) == ("incomplete", 0)
    assert lake.progress.lost == 6


def test_one_odd_time_behind_a_loss_completes_nothing() -> None:
    lake = new_lake(2, lost_offsets="record_loss")
    lake.run(1)
    lake.odd[(P0, 6)] = {"timestamp": 0}
    lake.logs[P0] = Range(6, 10)
    lake.run(9)
    assert [tell(lake, n)[0] for n in range(2, 7)] == ["incomplete"] * 5


def test_a_choice_to_follow_the_ledger_holds_for_the_runs_after_it() -> None:
    lake = new_lake()
    lake.run(3)
    lake.logs[P0] = Range(0, 6)
    lake.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        lake.run(4)
    lake.brokers.group[P0] = 6
    lake.choose(moved_group="follow_ledger")
    lake.logs[P0] = Range(0, 5)
    lake.run(4)
    assert lake.brokers.group == {P0: 5}
    lake.choose(moved_group="fail")
    lake.logs[P0] = Range(0, 8)
    lake.run(5)
    assert planned(lake, 5) == [(5, 8, 0, (Range(5, 8),))]


def test_a_rebuild_that_was_begun_goes_on_or_is_given_up_for_one_with_other_wishes() -> None:
    lake = new_lake()
    run = lake.run(3)
    begun = lake.rebuild(run, until="planned")
    assert lake.rebuild(run, until="planned") == begun
    other = lake.rebuild(run, keep=True)
    assert (begun, other) == (f"{run}+r1", f"{run}+r2")
    ended = lake.commit(begun)
    assert (ended.outcome, ended.by) == ("given_up", "the next run")
    assert len(lake.stored()) == 8


def test_a_rebuild_that_was_given_up_keeps_its_name_though_its_plan_is_deleted() -> None:
    lake = new_lake()
    run = lake.run(3)
    begun = lake.rebuild(run, until="planned")
    lake.run(4)
    lake.store.delete(run_document(lake.name, begun, "plan"))
    assert lake.rebuild(run) == f"{run}+r2"
    restore_document(lake.ledger, run_document(lake.name, begun, "plan"))
    assert lake.audit().verdict == "clean"


def test_what_a_generation_has_of_the_same_log_is_not_archived_again_by_a_backfill() -> None:
    lake = new_lake(6, moved_group="new_generation")
    lake.run(5)
    lake.logs[P0] = Range(0, 9)
    lake.brokers.group[P0] = 7
    lake.run(8)
    lake.run(2, "backfill")
    assert tell(lake, 2)[1] == 1
    # A group wound back on purpose archives again what it was wound back over, and nothing else.
    lake.brokers.group[P0] = 8
    lake.run(9)
    assert planned(lake, 9) == [(8, 9, 2, (Range(8, 9),))]


@pytest.mark.parametrize("recreated_topic", ["fail", "new_generation"])
def test_an_open_transaction_is_no_truncation(recreated_topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_lake(moved_group="new_generation", recreated_topic=recreated_topic)
    lake.run(3)
    lake.logs[P0] = Range(0, 9)
    ends = lake.brokers.log_ends
    monkeypatch.setattr(
        lake.brokers,
        "log_ends",
        lambda names, isolation: {
            n: 7 if isolation == "read_committed" else e for n, e in ends(names, isolation).items()
        },
    )
    lake.brokers.group[P0] = 9
    lake.run(8)
    assert planned(lake, 8) == [(9, 9, 1, ())]


def test_a_topic_of_a_pattern_made_again_with_fewer_partitions_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = new_lake(3, recreated_topic="new_generation")
    lake.logs[P1] = Range(0, 3)
    source = lake.archive.source.model_copy(update={"topics": None, "pattern": "ord.*"})
    lake.configure(lake.archive.model_copy(update={"source": source}))
    topics = lake.brokers.topics
    monkeypatch.setattr(lake.brokers, "topics", lambda _: topics({"orders"}))
    lake.run(3)
    lake.brokers.ids["orders"] = "new"
    del lake.logs[P1]
    lake.logs[P0] = Range(0, 2)
    lake.run(4)
    lake.choose(recreated_topic="fail")
    lake.run(5)
    report = lake.audit(cluster=lake.brokers)
    assert (report.verdict, [f.kind for f in report.findings]) == ("clean", ["topic-gone"])


def test_a_log_truncated_below_what_is_planned_is_lost_only_when_told_to() -> None:
    lake = new_lake()
    lake.run(3)
    lake.logs[P0] = Range(0, 8)
    lake.run(7, until="planned")
    lake.logs[P0] = Range(0, 6)
    lake.choose(recreated_topic="new_generation")
    with pytest.raises(PolicyError, match=r"ends at 6 now.*truncated.*record_loss"):
        lake.run(8)
    lake.choose(lost_offsets="record_loss")
    lake.run(8)
    manifest = lake.manifest(hour(7).id)
    assert (manifest.account["archived"], manifest.account["lost"]) == (2, 2)


def test_a_backfill_of_a_truncated_log_does_not_call_new_records_archived() -> None:
    lake = new_lake(6)
    lake.run(5)
    lake.logs[P0] = Range(0, 3)
    with pytest.raises(PolicyError, match="past the end of the log at 3"):
        plan(lake.context, hour(1), "backfill")


def test_hours_are_not_proved_by_what_is_not_committed() -> None:
    lake = new_lake()
    run = lake.run(3, until="written")
    with pytest.raises(IntegrityError, match="is not committed"):
        close_hours(lake.context, [run])


def test_a_manifest_that_was_edited_is_not_taken_for_objects_that_are_wrong() -> None:
    lake = new_lake()
    run = lake.run(3)
    manifest = lake.manifest(run)
    edited = manifest.objects[0].model_copy(update={"rows": 7})
    document = manifest.model_copy(update={"objects": (edited, *manifest.objects[1:])})
    lake.store.put(f"_ledger/{lake.name}/runs/{run}/manifest.json", document.to_json())
    with pytest.raises(IntegrityError, match=r"is not the one that was committed .*restore it"):
        verify(lake.context, [run])


def test_a_plan_that_was_deleted_is_named_with_the_command_that_says_what_else_is_missing() -> None:
    lake = new_lake(6)
    for number in (1, 2, 3):
        lake.run(number)
    lake.store.delete(line_document(lake.name, 2))
    with pytest.raises(ConfigError, match=f"place 2 of .* is empty: .*`airflow archive audit {lake.name}` says what"):
        last_runs(lake.ledger, 3)


def test_a_run_in_full_has_its_documents_and_the_account_of_each_partition() -> None:
    lake = new_lake(5, start=2)
    lake.run(1)
    detail = run_details(lake.ledger, "last")
    assert (detail.run, detail.state, detail.store) == (hour(1).id, "settled", lake.store.url)
    assert detail.plan == lake.planned(detail.run)
    assert (detail.manifest, detail.commit) == (lake.manifest(detail.run), lake.commit(detail.run))
    [account] = detail.accounts
    assert {**lake.manifest(detail.run).account, "topic": "orders", "partition": 0} == account.model_dump()
    assert account.offsets == detail.plan.count
    [summary] = last_runs(lake.ledger, 1)
    assert (summary.run, summary.interval_start, summary.offsets) == (detail.run, hour(1).start, detail.plan.count)


@pytest.mark.parametrize("moved_group", ["fail", "new_generation"])
def test_a_group_that_stands_where_an_unfinished_run_starts_was_moved_by_nobody(moved_group: str) -> None:
    lake = new_lake(1, moved_group=moved_group)
    # A connector was here before: the archive begins where its group stands, and the first run takes nothing.
    lake.brokers.group[P0] = 1
    lake.run(1)
    lake.logs[P0] = Range(0, 3)
    lake.run(2, until="planned")
    lake.logs[P0] = Range(0, 4)
    lake.run(3)
    assert planned(lake, 3) == [(3, 4, 0, (Range(3, 4),))]
    assert len(lake.stored()) == 3


def test_a_group_that_was_put_back_as_the_message_says_was_moved_by_nobody_either() -> None:
    lake = new_lake(1)
    lake.run(1)
    lake.logs[P0] = Range(0, 2)
    lake.run(2, until="planned")
    lake.brokers.group[P0] = 0
    with pytest.raises(PolicyError, match=r"put the group back with `kafka-consumer-groups .*--to-offset 2 "):
        lake.run(3)
    lake.brokers.group[P0] = 2
    lake.logs[P0] = Range(0, 3)
    lake.run(3, until="planned")
    lake.logs[P0] = Range(0, 4)
    lake.run(4)
    assert [planned(lake, number) for number in (3, 4)] == [
        [(2, 3, 0, (Range(2, 3),))],
        [(3, 4, 0, (Range(3, 4),))],
    ]


def test_a_run_that_is_taken_over_behind_a_new_generation_of_its_log_is_not_archived_again() -> None:
    lake = new_lake(2)
    lake.run(1)
    lake.logs[P0] = Range(0, 5)
    run = lake.run(4, until="planned")
    lake.logs[P0], lake.brokers.group[P0] = Range(0, 7), 6
    lake.choose(moved_group="new_generation")
    lake.run(6, until="planned")
    lake.rebuild(run)
    lake.choose(moved_group="fail")
    lake.run(7)
    assert [(p.generation, p.covered, p.earlier) for p in lake.progress.partitions] == [(1, ((6, 7),), ((0, 5),))]
    for number in (2, 3, 4, 5):
        lake.run(number, "backfill") if number != 4 else None
    assert [planned(lake, number)[0][3] for number in (2, 3, 5)] == [(), (), (Range(5, 6),)]
    assert tell(lake, 4) == ("complete", 1)
    assert lake.audit().verdict == "clean"


def test_a_topic_that_only_a_backfill_has_seen_does_not_vanish_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bills = TopicPartition("order-bills", 0)
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2), bills: Range(0, 1)})
    source = lake.archive.source.model_copy(update={"topics": None, "pattern": "order.*"})
    lake.configure(lake.archive.model_copy(update={"source": source}))
    topics = lake.brokers.topics
    monkeypatch.setattr(lake.brokers, "topics", lambda _: topics({name.topic for name in lake.logs}))
    lake.run(0, "backfill")
    # Describe is revoked, and a record comes that nobody sees.
    del lake.logs[bills]
    with pytest.raises(PolicyError, match=r"topics order-bills match source\.pattern and were archived before"):
        lake.run(1)


def test_nothing_is_said_of_a_moment_before_a_loss_though_the_clocks_went_back_since() -> None:
    lake = new_lake(2, lost_offsets="record_loss")
    lake.run(0)
    lake.logs[P0] = Range(0, 7)
    lake.run(5, until="planned")
    lake.logs[P0] = Range(5, 7)
    # Both clocks are put back by an hour.
    lake.now -= timedelta(hours=1)
    lake.finish(PlannedWork((hour(5).id,), (hour(5).id,)))
    progress = lake.progress
    assert (progress.as_of, progress.marks) == (hour(0).end + timedelta(minutes=5), ())


def test_nothing_is_said_of_a_moment_before_retention_had_what_nobody_had_asked_about() -> None:
    lake = new_lake(3)
    lake.run(6, "backfill")
    lake.logs[P0] = Range(2, 4)
    lake.now = hour(3).end
    lake.finish(plan(lake.context, hour(3), "scheduled"))
    progress = lake.ledger.progress()
    assert progress is not None
    assert (progress.as_of, progress.marks, progress.whole_from) == (hour(3).end, (), hour(4).end)


@pytest.mark.parametrize("choice", ["follow_ledger", "new_generation"])
def test_what_a_plan_has_decided_about_the_group_is_not_asked_again_while_its_run_is_not_finished(choice: str) -> None:
    lake = new_lake(2)
    lake.run(1)
    lake.logs[P0] = Range(0, 6)
    lake.odd[P0, 3] = {"value": b"bad\nvalue"}
    with pytest.raises(PermanentError, match="newline"):
        lake.run(5)
    lake.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        lake.run(6)
    lake.choose(moved_group=choice)
    with pytest.raises(PermanentError, match="newline"):
        lake.run(6)
    # The next message is followed, and that one alone.
    lake.choose(moved_group="fail", bad_record="skip")
    lake.run(7)
    lake.choose(bad_record="fail")
    lake.run(8)
    assert lake.brokers.group == {P0: 6}
    assert lake.audit().verdict == "clean"
    # What somebody does afterwards is asked about.
    lake.brokers.group[P0] = 5
    with pytest.raises(PolicyError, match="somebody moved the group"):
        lake.run(9)

"""Tasks that wake up after their run was taken over, repaired or rebuilt: found by an attack, one test each."""

import uuid

import pytest

from kafka_archiver.messages.errors import PermanentError, PolicyError
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import PlannedWork
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.repair import find_repairs, record_lost, write_again
from kafka_archiver.work.verify import verify
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)
RUN = hour(1).id


@pytest.fixture
def lake() -> Lake:
    return Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 6)})


def kinds(lake: Lake) -> list[str]:
    return [f.kind for f in lake.audit().damage]


def outcomes(lake: Lake) -> dict[str, str | None]:
    ledger = lake.context.ledger
    return {p.run: (commit := ledger.commit(p.run)) and commit.outcome for p in ledger.following(0)}


def test_a_run_that_becomes_final_first_is_not_taken_over(lake: Lake) -> None:
    lake.run(1, until="written")
    append = type(lake.context.ledger).append

    def asleep_before_the_takeover(ledger: object, plan: object) -> bool:
        """The run's own task wakes up between what the rebuild has read and what it writes."""
        commit(lake.context, [RUN])
        return append(ledger, plan)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(lake.context.ledger), "append", asleep_before_the_takeover)
        lake.rebuild(RUN)
    assert outcomes(lake) == {RUN: "committed", f"{RUN}+r1": "given_up", f"{RUN}+r2": "committed"}
    assert kinds(lake) == []


def test_so_it_is_where_the_planner_of_the_takeover_died(lake: Lake) -> None:
    lake.run(1, until="written")
    lake.rebuild(RUN, until="planned")
    # As if it had died right behind the plan.
    lake.store.delete(f"_ledger/{lake.context.ledger.archive}/runs/{RUN}/commit.json")
    assert kinds(lake) == []
    commit(lake.context, [RUN])
    lake.run(2)
    assert outcomes(lake) == {RUN: "committed", f"{RUN}+r1": "given_up", hour(2).id: "committed"}
    assert kinds(lake) == []


def test_what_is_written_and_not_final_is_not_rebuilt_from_less(lake: Lake) -> None:
    lake.run(1, until="written")
    lake.logs[P0] = Range(4, 6)
    with pytest.raises(PolicyError, match=r"cannot be rebuilt: .* Kafka has removed everything before 4"):
        rebuild_run(lake.context, RUN)


def test_a_replay_of_a_repaired_run_is_thrown_away_with_it(lake: Lake) -> None:
    lake.run(1)
    first, second, *_ = lake.stored()
    lake.store.delete(first)
    lake.logs[P0] = Range(4, 6)
    repair = record_lost(lake.context, RUN, [first])
    # A zombie replays the repair: it has sent an object under the key that the first run gave it.
    upload = lake.store.start_upload(second)
    record_lost(lake.context, repair.run, [second], given_up=[second])
    assert not [u for u in lake.store.list_uploads("") if u[1] == upload]
    assert kinds(lake) == []


def test_what_has_come_back_meanwhile_is_not_lost(lake: Lake) -> None:
    lake.run(1)
    [key, *_] = lake.stored()
    data = lake.store.get(key) or b""
    lake.store.delete(key)
    lake.logs[P0] = Range(6, 6)
    assert find_repairs(lake.context, lake.audit()).lost
    lake.store.put(key, data)
    assert record_lost(lake.context, RUN, [key]).run == RUN
    assert lake.store.get(key) == data


def test_of_two_repairs_at_once_both_say_what_counts(lake: Lake) -> None:
    lake.run(1)
    first, second, *_ = lake.stored()
    for key in (first, second):
        lake.store.delete(key)
    lake.logs[P0] = Range(6, 6)
    append = type(lake.context.ledger).append
    outcomes_of_other: list[str] = []

    def overtaken(ledger: object, plan: object) -> bool:
        done = append(ledger, plan)  # type: ignore[arg-type]
        if not outcomes_of_other:
            outcomes_of_other.append("once")
            record_lost(lake.context, RUN, [second])
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(lake.context.ledger), "append", overtaken)
        lost = record_lost(lake.context, RUN, [first])
    assert {o.key for o in lake.manifest(lost.run).lost_objects} == {first, second}
    assert kinds(lake) == []


def test_a_rebuild_that_was_given_up_says_so_to_who_asked_for_it(lake: Lake) -> None:
    lake.run(1)
    rebuild_run(lake.context, RUN)
    lake.run(2)
    with pytest.raises(PermanentError, match=r"\+r1 of archive \S+ was given up .*`airflow archive rebuild "):
        verify(lake.context, [f"{RUN}+r1"])


def test_a_repair_leaves_the_rebuild_of_another_run_alone(lake: Lake) -> None:
    lake.run(1)
    lake.logs[P0] = Range(0, 12)
    lake.run(2)
    [key, *_] = lake.stored()
    lake.store.delete(key)
    rebuild_run(lake.context, hour(2).id)
    record_lost(lake.context, RUN, [key], given_up=[key])
    assert outcomes(lake)[f"{hour(2).id}+r1"] is None


def test_what_a_repair_names_is_written_again_and_its_intent_says_the_same(lake: Lake) -> None:
    lake.run(1)
    first, second, *_ = lake.stored()
    lake.store.delete(first)
    repair = record_lost(lake.context, RUN, [first], given_up=[first])
    data = lake.store.get(second)
    lake.store.delete(second)
    again: PlannedWork = write_again(lake.context, [repair.run])
    lake.finish(again)
    assert lake.store.get(second) == data
    assert kinds(lake) == []

"""A rebuild in place of a run that could not be finished: the archive goes on as if that run had been."""

import re
import uuid
from datetime import timedelta

import pytest

from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.planning import interval_offsets
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.clean_up import clean_up
from kafka_archiver.work.plan import plan
from tests.support.lake import Lake, hour

P0 = TopicPartition("orders", 0)
STRICT = {"missing_group": "fail", "moved_group": "fail"}


@pytest.fixture(params=[None, 0], ids=["group nowhere", "group where the archive began"])
def lake(request: pytest.FixtureRequest) -> Lake:
    """An archive whose first run is planned. Nothing has moved the group, and nobody may be told that somebody did."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, policies=STRICT)
    if request.param is not None:
        lake.brokers.group[P0] = request.param
    lake.run(1, until="planned")
    return lake


def test_the_group_moves_as_the_run_would_have_moved_it(lake: Lake) -> None:
    lake.rebuild(hour(1).id)
    assert lake.brokers.group == {P0: 2}
    lake.run(2)
    assert lake.brokers.group == {P0: 2}


@pytest.mark.parametrize("until", ["planned", "written", "committed"])
def test_one_that_was_stopped_is_finished_by_the_next_run(lake: Lake, until: str) -> None:
    group = dict(lake.brokers.group)
    lake.rebuild(hour(1).id, until=until)
    if until == "committed":
        # It died before it had moved the group.
        lake.brokers.group, lake.brokers.stamps = group, {}
    lake.logs[P0] = Range(0, 4)
    lake.run(2)
    assert lake.brokers.group == {P0: 4}
    assert lake.audit().verdict == "clean"


def test_in_place_of_a_backfill_it_leaves_the_group_where_it_is() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 6)}, policies=STRICT)
    lake.run(1, "backfill", until="planned")
    lake.rebuild(hour(1).id)
    assert lake.brokers.group == {}
    lake.run(8)
    assert lake.brokers.group == {P0: 6}
    assert lake.audit().verdict == "clean"


def test_of_a_run_that_began_anew_it_makes_no_further_hours_unsure() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, policies={"recreated_topic": "new_generation"})
    lake.run(1)
    lake.brokers.ids["orders"] = "new"
    lake.logs[P0] = Range(0, 3)
    run = lake.run(2, until="planned")
    lake.now += timedelta(hours=4)
    lake.rebuild(run)
    lake.run(9)
    assert [lake.proof(number).status for number in range(2, 9)] == ["incomplete"] * 2 + ["complete"] * 5
    assert lake.audit().verdict == "clean"


def test_of_a_backfill_that_assumes_an_order_it_proves_the_hours_as_well() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 30)})
    timestamp = lake.archive.timestamp.model_copy(update={"max_disorder": timedelta(minutes=5)})
    source = lake.archive.source.model_copy(update={"start": "latest"})
    lake.configure(lake.archive.model_copy(update={"timestamp": timestamp, "source": source}))
    lake.run(29)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_offsets, "GUARD", 2)
        run = lake.run(5, "backfill", until="planned")
    lake.rebuild(run)
    proof = lake.proof(5)
    assert (proof.status, proof.closed_by, proof.assumes is None) == ("complete", f"{run}+r1", False)


def test_a_dag_run_that_was_planned_before_it_leaves_the_other_run_alone(lake: Lake) -> None:
    lake.logs[P0] = Range(0, 3)
    lake.now = hour(2).end
    work = plan(lake.context, hour(2), "scheduled")
    assert work.archive == (hour(1).id, hour(2).id)
    lake.rebuild(hour(1).id)
    # Kafka has lost what the replaced run would read.
    lake.logs[P0] = Range(2, 3)
    lake.finish(work)
    assert lake.ledger.manifest(hour(1).id) is None
    assert lake.audit().verdict == "clean"


def test_what_each_of_several_runs_in_one_anothers_place_made_visible_goes() -> None:
    """The first one was killed, its rebuild could not be finished either, and the rebuild of that is."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)})
    lake.run(1, until="written")
    left = lake.stored()[0]
    data = lake.store.get(left)
    assert data
    lake.rebuild(hour(1).id, until="planned")
    settings = lake.archive.store.model_copy(update={"codec": "zstd"})
    lake.configure(lake.archive.model_copy(update={"store": settings}))
    last = lake.rebuild(hour(1).id)
    assert last == f"{hour(1).id}+r2"
    assert all("+r2." in key for key in lake.stored())
    # As older code left it.
    lake.store.put(left, data)
    lake.now += timedelta(days=2)
    assert [item.key for item in clean_up(lake.ledger, lake.now)] == [left]
    assert lake.audit().verdict == "clean"


def test_a_stranger_stops_the_run_whose_chunk_it_names_and_is_explained_by_none_that_was_replaced(lake: Lake) -> None:
    lake.run(1, until="written")
    stranger = lake.stored()[0].replace(".jsonl.gz", ".bak")
    lake.store.put(stranger, b"x")
    with pytest.raises(IntegrityError, match=f"{re.escape(stranger)}.* move it away"):
        lake.run(2)
    lake.rebuild(hour(1).id)
    assert [(f.kind, f.subject) for f in lake.audit().damage] == [("unexplained", stranger)]

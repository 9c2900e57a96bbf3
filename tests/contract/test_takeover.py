"""A rebuild in place of a run that could not be finished: the archive goes on as if that run had been."""

import uuid

import pytest

from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.store.memory import MemoryStore
from tests.support.lake import Lake, hour

P0 = TopicPartition("orders", 0)
STRICT = {"missing_group": "fail", "moved_group": "fail"}


@pytest.fixture(params=[None, 0], ids=["group nowhere", "group where the archive began"])
def lake(request: pytest.FixtureRequest) -> Lake:
    """An archive whose first run is planned. Nothing has moved the group, and nobody may be told that somebody did."""
    made = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)}, policies=STRICT)
    if request.param is not None:
        made.brokers.group[P0] = request.param
    made.run(1, until="planned")
    return made


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

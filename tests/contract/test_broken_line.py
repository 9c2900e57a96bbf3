"""A place of the line is gone: nobody takes it for another plan, which would archive the same offsets again."""

import uuid
from collections.abc import Callable

import pytest

from kafka_archiver.context.run_documents import write_repair_manifest
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.object_keys import line_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.commit import commit
from kafka_archiver.work.rebuild import rebuild_run
from kafka_archiver.work.repair import find_repairs, record_lost, restore_document
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.contract
P0 = TopicPartition("orders", 0)


@pytest.fixture
def lake() -> Lake:
    return Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 1)})


def delete(lake: Lake, number: int) -> bytes:
    key = line_document(lake.name, number)
    data = lake.store.get(key)
    assert data is not None
    lake.store.delete(key)
    return data


def three_planned(lake: Lake) -> None:
    for number in (1, 2, 3):
        lake.logs[P0] = Range(0, number)
        lake.run(number, until="planned")


def plans_a_run(lake: Lake) -> None:
    lake.run(4)


def plans_a_rebuild(lake: Lake) -> None:
    rebuild_run(lake.context, hour(1).id)


@pytest.mark.parametrize(("gone", "planner"), [(1, plans_a_run), (2, plans_a_run), (2, plans_a_rebuild)])
def test_where_a_plan_is_gone_nobody_plans_in_its_place_and_repair_puts_it_back(
    lake: Lake, gone: int, planner: Callable[[Lake], None]
) -> None:
    three_planned(lake)
    delete(lake, gone)
    lake.logs[P0] = Range(0, 4)
    with pytest.raises(IntegrityError, match=rf"place {gone} of the line of .* is empty.*`airflow archive repair "):
        planner(lake)
    for key in find_repairs(lake.context, lake.audit()).to_restore:
        restore_document(lake.ledger, key)
    lake.run(4)
    assert [p.covered for p in lake.progress.partitions] == [((0, 4),)]
    assert lake.audit().verdict == "clean"


def test_so_it_is_where_the_last_place_is_that_of_a_takeover(lake: Lake) -> None:
    run = lake.run(1, until="planned")
    lake.rebuild(run, until="planned")
    plan = delete(lake, 2)
    lake.logs[P0] = Range(0, 2)
    with pytest.raises(IntegrityError, match=rf"place 2 of the line .* is empty: run {run} was replaced by {run}\+r1"):
        lake.run(2)
    lake.store.create(line_document(lake.name, 2), plan)
    lake.run(2)
    assert lake.audit().verdict == "clean"


def test_nothing_is_written_for_a_plan_whose_place_another_one_has(lake: Lake) -> None:
    lake.run(1)
    lake.logs[P0] = Range(0, 2)
    ghost = lake.run(2, until="written")
    delete(lake, 2)
    # Nobody can know that there was another one.
    lake.logs[P0] = Range(0, 3)
    lake.run(3)
    stored = {key: lake.store.get(key) for key in lake.stored()}
    for step in (lake.job().run, lambda run: commit(lake.context, [run])):
        with pytest.raises(IntegrityError, match=rf"place 2 of the line .* has run {hour(3).id}, and not {ghost}"):
            step(ghost)
    assert {key: lake.store.get(key) for key in lake.stored()} == stored
    assert lake.ledger.commit(ghost) is None


def test_nor_for_one_whose_place_is_empty(lake: Lake) -> None:
    run = lake.run(1)
    [key] = lake.stored()
    lake.store.delete(key)
    lake.logs[P0] = Range(1, 1)
    repair = record_lost(lake.context, run, [key])
    delete(lake, 2)
    with pytest.raises(IntegrityError, match=r"place 2 of the line .* is empty, and run"):
        commit(lake.context, [repair.run])
    with pytest.raises(IntegrityError, match=r"place 2 of the line .* is empty, and run"):
        write_repair_manifest(lake.context, repair)

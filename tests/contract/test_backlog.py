"""Runs that were planned and not finished are brought to their end one by one: each of them is progress."""

import uuid
from collections.abc import Callable

import pytest

from kafka_archiver.messages.errors import IntegrityError, PermanentError, PolicyError, TransientError
from kafka_archiver.model.object_keys import run_document
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import Interval
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.backlog import archive_runs, unsettled_runs
from kafka_archiver.work.plan import plan
from tests.support.lake import Lake, hour

P0 = TopicPartition("orders", 0)
RUNS = [hour(number).id for number in (1, 2, 3, 4)]


@pytest.fixture
def lake() -> Lake:
    """Three runs that were planned, of two offsets each."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 2)})
    for number in (1, 2, 3):
        lake.run(number, until="planned")
        lake.logs[P0] = Range(0, 2 * number + 2)
    return lake


def settled(lake: Lake) -> int:
    progress = lake.ledger.progress()
    return progress.settled if progress else 0


def jobs(lake: Lake, dies_at: str = "") -> tuple[list[tuple[str, int]], Callable[[str], object]]:
    """The job, and what it did: each run, and how many were settled when it was its turn."""
    done: list[tuple[str, int]] = []

    def archive(run: str) -> object:
        done.append((run, settled(lake)))
        if run == dies_at:
            raise TransientError("killed")
        return lake.job().run(run)

    return done, archive


def test_each_run_is_settled_before_the_next_is_read_and_the_last_is_left_to_its_tasks(lake: Lake) -> None:
    lake.now = hour(4).end
    work = plan(lake.context, hour(4), "scheduled")
    assert work.runs == work.archive == tuple(RUNS)
    done, archive = jobs(lake)
    archive_runs(lake.context, work, archive)
    assert done == [(run, number) for number, run in enumerate(RUNS)]
    assert lake.ledger.commit(RUNS[-1]) is None
    assert unsettled_runs(lake.context, work.runs) == RUNS[-1:]
    assert lake.brokers.group == {P0: 6}


def test_of_unfinished_runs_all_are_finished_whichever_is_cleared_and_its_own_is_the_last(lake: Lake) -> None:
    work = plan(lake.context, hour(1), "scheduled")
    assert work.runs == work.archive == (RUNS[1], RUNS[2], RUNS[0])
    lake.finish(work)
    # Hours are proved in the order of the line nevertheless.
    assert [lake.proof(number).status for number in (1, 2, 3)] == ["complete"] * 3
    lake.now = hour(4).end
    assert plan(lake.context, hour(4), "scheduled").runs == (hour(4).id,)


def test_a_plan_that_somebody_deleted_is_written_again_as_it_stands_in_the_line(lake: Lake) -> None:
    planned = lake.planned(RUNS[1])
    lake.store.delete(run_document(lake.name, RUNS[1], "plan"))
    lake.now = hour(4).end
    assert plan(lake.context, hour(4), "scheduled").runs == tuple(RUNS)
    assert lake.planned(RUNS[1]) == planned


def test_an_interval_that_has_not_ended_or_is_of_another_schedule_is_refused(lake: Lake) -> None:
    before = lake.ledger.runs()
    with pytest.raises(PolicyError, match="has not ended yet"):
        plan(lake.context, hour(5), "scheduled")
    with pytest.raises(PolicyError, match="the schedule was changed"):
        plan(lake.context, Interval(start=hour(1).start, end=hour(2).end), "scheduled")
    assert lake.ledger.runs() == before


def test_a_run_whose_plan_is_in_another_store_says_so_and_how_to_go_on(lake: Lake) -> None:
    with pytest.raises(PermanentError, match=r"has no plan in .*`store.url` was changed.*airflow dags trigger"):
        lake.job().run(hour(5).id)


def test_an_attempt_that_dies_half_way_has_done_half(lake: Lake) -> None:
    lake.now = hour(4).end
    work = plan(lake.context, hour(4), "scheduled")
    _, archive = jobs(lake, dies_at=RUNS[2])
    with pytest.raises(TransientError, match="killed"):
        archive_runs(lake.context, work, archive)
    assert settled(lake) == 2
    assert unsettled_runs(lake.context, work.runs) == RUNS[2:]
    # The retry of the task, and a run that comes after it: neither reads again what is done.
    again, archive = jobs(lake)
    archive_runs(lake.context, work, archive)
    assert [run for run, _ in again] == RUNS[2:]
    lake.now = hour(5).end
    work = plan(lake.context, hour(5), "scheduled")
    assert work.runs == (RUNS[3], hour(5).id)


def test_what_is_written_already_is_not_read_again_unless_it_is_gone(lake: Lake) -> None:
    lake.now = hour(4).end
    work = plan(lake.context, hour(4), "scheduled")
    lake.job().run(RUNS[0])
    lake.job().run(RUNS[1])
    lake.store.delete(next(key for key in lake.stored() if f"{2:020d}" in key))
    done, archive = jobs(lake)
    archive_runs(lake.context, work, archive)
    assert done == [(RUNS[1], 1), (RUNS[2], 2), (RUNS[3], 3)]
    assert lake.audit(deep=True).verdict == "clean"


def test_a_run_that_cannot_be_made_whole_stops_what_is_behind_it(lake: Lake) -> None:
    lake.now = hour(4).end
    work = plan(lake.context, hour(4), "scheduled")
    lake.job().run(RUNS[0])
    for key in lake.stored():
        lake.store.delete(key)
    lake.logs[P0] = Range(2, 8)
    with pytest.raises(IntegrityError, match="Kafka does not have its records any more"):
        archive_runs(lake.context, work, jobs(lake)[1])
    assert settled(lake) == 0


def test_runs_without_offsets_need_no_job() -> None:
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 0)})
    lake.run(1, until="planned")
    lake.now = hour(2).end
    work = plan(lake.context, hour(2), "scheduled")
    assert (work.runs, work.archive) == (tuple(RUNS[:2]), ())
    done, archive = jobs(lake)
    archive_runs(lake.context, work, archive)
    assert (done, settled(lake)) == ([], 1)

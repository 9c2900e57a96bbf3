"""One look at an archive: what it says, what it costs, and what is left when a service does not answer."""

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.orchestration.dag_run.figures import figures
from kafka_archiver.state.overview import Snapshot, take_snapshot
from kafka_archiver.state.overview.incomplete import IncompleteHour, of_hours
from kafka_archiver.state.status import status
from kafka_archiver.state.status.facts import DagRun, Effort, Facts, Written
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.intervals import to_ms
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.close_hours import ClosedHours
from tests.support.brokers import Brokers
from tests.support.counted import Counted
from tests.support.runs import DAY, P0, P1, hour, run

pytestmark = pytest.mark.unit

NOW = DAY + timedelta(hours=6)
QUIET = Facts(dag_id="archive_orders", interval=timedelta(hours=1))


@pytest.fixture
def context() -> Context:
    """Two settled runs of the archive orders; two records wait."""
    archive = Archive.model_validate(
        {"archive": "orders", "source": {"topics": ["orders"]}, "store": {"url": "s3://b/p"}}
    )
    store: Any = Counted(MemoryStore(uuid.uuid4().hex, clock=lambda: NOW))
    brokers: Any = Brokers({P0: Range(0, 3), P1: Range(0, 3)}, first=to_ms(DAY) // 3_600_000)
    context = Context(archive, brokers, store, Ledger(store, "orders"))
    run(context, 2)
    brokers.logs.update({P0: Range(0, 4), P1: Range(0, 4)})
    run(context, 3)
    brokers.logs.update({P0: Range(0, 6)})
    return replace(context, clock=lambda: NOW)


def test_a_look_says_what_the_command_says(context: Context) -> None:
    snapshot, state = take_snapshot(context, QUIET), status(context, QUIET)
    assert snapshot.state == state
    assert (snapshot.lag, snapshot.troubles) == (state.lag, state.troubles)
    assert snapshot.lag == 2
    assert snapshot.behind(context.clock()) == timedelta(hours=2)
    assert snapshot.age(context.clock()) == context.clock() - snapshot.closed_until
    assert snapshot.hours_open(context.clock()) == 2
    last = snapshot.last_run
    assert last is not None
    assert (last.run, last.rows, last.objects, last.bytes, last.lost) == (hour(3).id, 2, 2, 2000, 0)


def test_it_has_the_last_audit_and_what_the_last_committed_run_took(context: Context) -> None:
    ended = DAY + timedelta(hours=4, minutes=9)
    done = DagRun(
        run_id="a", state="success", forward=True, date=DAY, due=DAY, begun=ended - timedelta(minutes=7), ended=ended,
        finished=(hour(3).id,), effort=Effort(retries=1, cpu_seconds=2.5),
        wrote=Written(runs=2, records=50, bytes=100),
    )  # fmt: skip
    # A run by hand that found nothing.
    empty = done.model_copy(update={"run_id": "b", "begun": ended, "ended": ended, "finished": (), "effort": None})
    publish(context.store, audit(context.archive, context.store, context.clock()))
    snapshot = take_snapshot(context, QUIET.model_copy(update={"runs": (empty, done)}))
    assert (snapshot.duration, snapshot.effort, snapshot.wrote) == (timedelta(minutes=7), done.effort, done.wrote)
    assert take_snapshot(context, QUIET.model_copy(update={"runs": (empty,)})).duration is None
    assert snapshot.audit is not None
    assert snapshot.audit.at == context.clock()
    assert snapshot.audit.counts is not None
    assert snapshot.audit.counts.rows == 8


def test_brokers_that_do_not_answer_leave_what_the_ledger_knows(context: Context) -> None:
    brokers: Any = context.cluster
    whole, brokers.failure = take_snapshot(context, QUIET), TransientError("no broker answers")
    snapshot = take_snapshot(context, QUIET.model_copy(update={"paused": True}))
    assert (snapshot.error, snapshot.lag, snapshot.state) == ("no broker answers", None, None)
    assert (snapshot.closed_until, snapshot.begun) == (whole.closed_until, whole.begun)
    assert snapshot.last_run == whole.last_run is not None
    assert (snapshot.ledger_read, [trouble.kind for trouble in snapshot.troubles]) == (
        True,
        ["never audited", "paused"],
    )


def test_a_store_that_does_not_answer_leaves_what_airflow_knows(context: Context) -> None:
    store: Any = context.store
    store.failure = TransientError("no store answers")
    snapshot = take_snapshot(context, QUIET.model_copy(update={"known": False}))
    assert (snapshot.error, snapshot.state, snapshot.closed_until) == ("no store answers", None, None)
    assert (snapshot.ledger_read, [trouble.kind for trouble in snapshot.troubles]) == (False, ["no dag"])


def test_hours_that_a_loss_leaves_incomplete_are_named_and_not_called_complete(context: Context) -> None:
    brokers: Any = context.cluster
    assert take_snapshot(context, QUIET).incomplete == ()
    brokers.logs.update({P0: Range(5, 7), P1: Range(8, 9)})
    run(replace(context, archive=context.archive.choosing({"lost_offsets": "record_loss"})), 4)
    snapshot = take_snapshot(context, QUIET)
    assert snapshot.closed_until == DAY + timedelta(hours=5)
    assert [hour.hour_start for hour in snapshot.incomplete or ()] == [DAY + timedelta(hours=4)]
    loss = next(trouble for trouble in snapshot.troubles if trouble.kind == "incomplete hours")
    assert loss.severity == "warning"
    assert "1 of the last 72 closed hours is incomplete: 2026-11-20 04:00 to 2026-11-20 05:00 UTC (" in loss.observed
    assert "(offsets of orders[0] before 5, orders[1] before 8 were lost (run 20261120T040000Z))" in loss.observed
    # Nothing brings them back.
    assert [step for step in loss.steps if "fill" in step] == []
    done = figures(context, [hour(4).id], ClosedHours())
    assert (done.lost, done.lost_by) == (5, {"orders[0]": 1, "orders[1]": 4})
    assert (done.incomplete, done.unsure_until) == ((DAY + timedelta(hours=4),), DAY + timedelta(hours=6))
    # Only a settled run changes them.
    store: Any = context.store
    store.asked.clear()
    assert take_snapshot(context, QUIET, snapshot).incomplete == snapshot.incomplete
    assert not [request for request in store.asked if "/hours/" in request]


def test_incomplete_hours_that_kafka_can_complete_have_the_command_that_does() -> None:
    hours = [IncompleteHour(hour_start=DAY, reason="the archive does not have orders[0] [0, 5)", fillable=True)]
    [finding] = of_hours("orders", hours)
    assert finding.steps == ("airflow archive fill orders",)


def test_the_cost_of_a_look_does_not_grow_with_the_runs(context: Context) -> None:
    store: Any = context.store

    def cost(before: Snapshot | None = None) -> list[str]:
        store.asked.clear()
        take_snapshot(context, QUIET, before)
        return [*sorted({request.split()[0] for request in store.asked}), str(len(store.asked))]

    first = cost()
    brokers: Any = context.cluster
    for number in range(4, 20):
        brokers.logs.update({P0: Range(0, number + 3)})
        run(context, number)
    brokers.logs.update({P0: Range(0, 24)})
    assert cost() == first
    assert "list" not in first
    # What cannot have changed is not read again.
    assert int(cost(take_snapshot(context, QUIET))[-1]) < int(first[-1])

"""The parameters that a person gives a single run, right and wrong."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.messages.errors import ConfigError, PolicyError
from kafka_archiver.orchestration.dag_run.form import KEYS, request_of
from kafka_archiver.orchestration.dag_run.params import Rebuild, require_known, with_params
from kafka_archiver.orchestration.dags import audit as audit_dags
from kafka_archiver.orchestration.dags import tasks
from kafka_archiver.orchestration.dags.audit import audit_dag
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.planned_work import PlannedWork
from tests.dags.conftest import MakeArchive, dag_of
from tests.support.lake import FIRST, Lake, hour

pytestmark = pytest.mark.dags
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIVE = datetime(2026, 11, 21, 5, tzinfo=UTC)


@pytest.fixture
def lake() -> Lake:
    """An archive whose last interval has run."""
    lake = Lake(MemoryStore(uuid.uuid4().hex), {P0: Range(0, 3), P1: Range(0, 3)})
    lake.run(2)
    return lake


@pytest.mark.parametrize(
    ("wishes", "hour", "run", "keep"),
    [
        ({"hour": "2026-11-21T05:00:00Z"}, FIVE, "", False),
        ({"hour": "2026-11-21T05:00"}, FIVE, "", False),
        ({"hour": "2026-11-21T06:00:00+01:00", "keep": True}, FIVE, "", True),
        ({"run": "20261121T050000Z"}, None, "20261121T050000Z", False),
        ({"run": "20261121T050000Z+r2"}, None, "20261121T050000Z+r2", False),
    ],
)
def test_a_rebuild_is_of_an_hour_or_of_a_run(
    wishes: dict[str, Any], hour: datetime | None, run: str, keep: bool
) -> None:
    assert Rebuild.of(wishes) == Rebuild(hour, run, keep)


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"keep": True},
        {"hour": "2026-11-21T05:00:00Z", "run": "20261121T050000Z"},
        {"hour": "yesterday"},
        {"hour": "0001-01-01T00:00:00+01:00"},
        {"run": "last"},
        {"run": "20261121T050000Z", "keep": "yes"},
        {"hours": "2026-11-21T05:00:00Z"},
    ],
)
def test_another_rebuild_is_refused_with_what_was_found(wishes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"in the run's `rebuild`: expected .* found \{"):
        Rebuild.of(wishes)


def test_a_policy_or_choice_that_there_is_not_is_refused_by_name(archive: MakeArchive) -> None:
    for policies, message in (
        ({"lost_offset": "record_loss"}, "`lost_offset` is not a key"),
        ({"lost_offsets": "ignore"}, "`lost_offsets`: expected 'fail' or 'record_loss'; found 'ignore'"),
    ):
        with pytest.raises(ConfigError, match="in the run's `policies`: ") as failure:
            with_params(archive(), {"max_records": 1, "policies": policies, "rebuild": None, "repair": None})
        assert message in str(failure.value)
        assert "(policies: lost_offsets, recreated_topic, " in str(failure.value)


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"polices": {"lost_offsets": "record_loss"}}, "`polices` (did you mean `policies`?)"),
        ({"max_record": 5, "rebuild": None, "repair": None}, "`max_record` (did you mean `max_records`?)"),
        ({"lost_offsets": "record_loss"}, "`lost_offsets` (did you mean `policies.lost_offsets`?) is not"),
        ({"policies.lost_offset": "record_loss"}, "(did you mean `policies.lost_offsets`?)"),
        ({"Rebuild": {}, "x": 1}, "`Rebuild` (did you mean `rebuild`?), `x` are not"),
    ],
)
def test_a_key_that_a_run_is_given_and_nobody_reads_is_refused_by_name(conf: dict[str, Any], message: str) -> None:
    with pytest.raises(
        ConfigError, match=r"of this DAG run's conf; expected dead_letters, dead_letters\.all, "
    ) as failure:
        require_known(conf, KEYS)
    assert message in str(failure.value)


def test_a_run_that_is_to_do_two_things_is_refused() -> None:
    with pytest.raises(ConfigError, match="has `fill` and `rebuild`; expected one of them"):
        request_of({"rebuild": {"run": "20261121T050000Z"}, "fill.all": True})


def test_both_dags_look_at_the_keys_before_they_do_anything(
    archive: MakeArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no connection here: whatever else they did first would fail otherwise."""
    context = {"dag_run": SimpleNamespace(conf={"deap": True}), "params": {}}
    for module, dag, task in (
        (tasks, dag_of(archive()), "plan"),
        (audit_dags, audit_dag(archive()), "audit"),
    ):
        monkeypatch.setattr(module, "get_current_context", lambda: context)
        with pytest.raises(ConfigError, match=r"`deap`.* is not a key of this DAG run's conf"):
            dag.get_task(task).python_callable()  # type: ignore[attr-defined]


def test_the_command_of_a_policy_s_error_is_valid_also_when_the_last_interval_has_a_plan(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger without a date plans what there is; only one of the interval that is archived would decide nothing."""
    loss = {"lost_offsets": "record_loss"}
    lake.logs[P0] = Range(5, 8)
    lake.now += timedelta(minutes=5)
    last = hour(2)
    run = SimpleNamespace(
        conf={"policies": loss}, run_type="manual", logical_date=None, run_after=lake.now, start_date=lake.now,
        data_interval_start=None, data_interval_end=None,
    )  # fmt: skip
    monkeypatch.setattr(tasks, "open_archive", lambda archive: replace(lake.context, archive=archive))
    monkeypatch.setattr(tasks, "runs_in_the_middle", lambda _: 0)
    context = {
        "dag_run": run,
        "ti": None,
        "params": {"max_records": 100, "policies": loss, "rebuild": None, "dead_letters": None, "repair": None},
    }
    monkeypatch.setattr(tasks, "get_current_context", lambda: context)
    plan: Any = dag_of(lake.archive).get_task("plan")
    with_a_date = {"data_interval_start": last.start, "data_interval_end": last.end, "logical_date": last.start}
    vars(run).update(with_a_date)
    with pytest.raises(ConfigError, match=r"decide nothing: .* Trigger the DAG without a date"):
        plan.python_callable()
    vars(run).update(dict.fromkeys(with_a_date))
    assert plan.python_callable().is_done
    planned = list(lake.ledger.following(0))[-1]
    assert [p.lost for p in planned.partitions] == [((3, 5),), ()]


def _plans(lake: Lake, monkeypatch: pytest.MonkeyPatch, archive: Any, **run: Any) -> Any:
    """Call the task `plan` of a DAG run, as Airflow does. Returns the plan that it is about."""
    fields = {"conf": {}, "logical_date": None, "data_interval_start": None, "data_interval_end": None}
    fields |= {"run_after": lake.now, "start_date": lake.now, "clear_number": 0, **run}
    monkeypatch.setattr(tasks, "open_archive", lambda archive: replace(lake.context, archive=archive))
    monkeypatch.setattr(tasks, "runs_in_the_middle", lambda _: 0)
    conf = fields["conf"]
    context = {"dag_run": SimpleNamespace(**fields), "ti": SimpleNamespace(xcom_push=lambda *_: None)}
    monkeypatch.setattr(tasks, "get_current_context", lambda: {**context, "params": {"max_records": 100, **conf}})
    plan: Any = dag_of(archive).get_task("plan")
    return lake.ledger.plan(plan.python_callable().xcom_value["runs"][-1])


@pytest.mark.parametrize("run_type", ["manual", "operator_triggered", "asset_materialization"])
@pytest.mark.parametrize("waited", [timedelta(0), timedelta(hours=5)])
def test_whoever_triggers_a_run_without_a_date_gets_what_is_in_kafka_now(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, run_type: str, waited: timedelta
) -> None:
    """By hand, from another DAG, or as an asset; however long the run has waited for its start."""
    lake.logs[P0] = Range(0, 5)
    lake.now += timedelta(minutes=5)
    asked = lake.now
    lake.now += waited
    plan = _plans(lake, monkeypatch, lake.archive, run_type=run_type, run_after=asked)
    assert [p.ranges for p in plan.partitions] == [((3, 5),), ()]
    assert (plan.origin, plan.interval.end) == ("manual", asked)
    # A cleared run is about the same plan.
    lake.logs[P0] = Range(0, 6)
    assert _plans(lake, monkeypatch, lake.archive, run_type=run_type, run_after=asked, clear_number=1) == plan


def test_runs_go_on_after_a_change_of_the_schedule(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger files a plan by the start of its interval, and the hour's plan begins where the day does."""
    lake.run(0)
    daily = lake.archive.model_copy(update={"schedule": "@daily"})
    lake.now = FIRST + timedelta(days=1, minutes=1)
    lake.logs[P0] = Range(0, 5)
    by_hand = _plans(lake, monkeypatch, daily, run_type="manual")
    assert [p.ranges for p in by_hand.partitions] == [((3, 5),), ()]
    lake.logs[P0] = Range(0, 7)
    day = {"data_interval_start": FIRST, "data_interval_end": FIRST + timedelta(days=1)}
    scheduled = _plans(lake, monkeypatch, daily, run_type="scheduled", **day)
    assert [p.ranges for p in scheduled.partitions] == [((5, 7),), ()]
    assert scheduled.origin == "scheduled"
    assert _plans(lake, monkeypatch, daily, run_type="scheduled", **day) == scheduled
    with pytest.raises(PolicyError, match=r"the schedule was changed.*airflow archive fill"):
        _plans(lake, monkeypatch, daily, run_type="backfill", **day)


def test_a_cleared_rebuild_goes_on_with_its_revision(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.now += timedelta(minutes=5)
    asked = {"run_type": "manual", "conf": {"rebuild": {"run": hour(2).id}}, "run_after": lake.now}
    first = _plans(lake, monkeypatch, lake.archive, **asked)
    assert first.run == f"{hour(2).id}+r1"
    lake.job().run(first.run)
    lake.finish(PlannedWork((first.run,), ()))
    stored = lake.stored()
    lake.now += timedelta(days=200)
    assert _plans(lake, monkeypatch, lake.archive, **asked, clear_number=1) == first
    lake.job().run(first.run)
    assert lake.stored() == stored
    # Who asks for another one gets another one.
    again = _plans(lake, monkeypatch, lake.archive, **{**asked, "run_after": lake.now})
    assert again.run == f"{hour(2).id}+r2"

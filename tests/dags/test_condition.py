"""The facts that `status` and `doctor` have of runs from Airflow's database, and the notes of failed tasks.

The sentences are in tests/unit/test_running.py.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.log import mask_secret

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import IntegrityError, PermanentError, TransientError
from kafka_archiver.orchestration.alerts.cause import CAUSE, leave_cause
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.state.status.facts import Effort, Written
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.planned_work import PlannedWork
from kafka_archiver.work.rebuild import rebuild_run
from tests.dags.conftest import DAGS as DAG_FILES
from tests.dags.conftest import MINIMAL, AddConnection, Call, MakeArchive, Session, dag_of
from tests.support.brokers import Brokers
from tests.support.metadata import metadata_database, register_dags
from tests.support.runs import P0, P1, finish, hour, run

pytestmark = pytest.mark.dags

MADE = Callable[..., str]


@pytest.fixture
def airflow_run(session: Session) -> MADE:
    """Makes a run of the DAG, as `airflow dags trigger` does, in a state of the test's choice."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.models import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from airflow.utils.types import DagRunTriggeredByType, DagRunType
    from sqlalchemy import select

    def make(
        state: str = "success",
        due: datetime | None = None,
        tasks: dict[str, str] | None = None,
        cause: dict[str, Any] | None = None,
        attempts: int = 1,
        minutes: float = 1,
        works: PlannedWork | None = None,
        **fields: Any,
    ) -> str:
        """:param tasks: their states; `cause`: what the first of them that failed has noted; `works`: of `plan`."""
        moment = due or datetime.now(UTC) - timedelta(minutes=minutes)
        with session() as opened:
            fields = {"triggered_by": DagRunTriggeredByType.CLI, "run_type": DagRunType.SCHEDULED, **fields}
            dag_run = trigger_dag(dag_id="archive_orders", run_after=moment, session=opened, **fields)
            stored_run = opened.scalars(select(DagRun).where(DagRun.run_id == dag_run.run_id)).one()
            stored_run.state, stored_run.start_date = state, moment if state != "queued" else None
            stored_run.end_date = moment + timedelta(minutes=minutes / 2) if state in ("success", "failed") else None
            for ti in opened.scalars(select(TaskInstance).where(TaskInstance.run_id == dag_run.run_id)):
                ti.state = (tasks or {}).get(ti.task_id, "success" if state == "success" else None)
                ti.try_number = attempts
                ti.end_date = moment if ti.state == "failed" else None
                left: dict[str, Any] = {CAUSE: cause} if cause and ti.state in ("failed", "up_for_retry") else {}
                if works and ti.task_id == "plan":
                    left = {"return_value": works.to_dict()}
                for key, value in left.items():
                    opened.flush()
                    XComModel.set(key, value, dag_id=ti.dag_id, task_id=ti.task_id, run_id=ti.run_id, session=opened)
            return str(dag_run.run_id)

    return make


@pytest.fixture
def settled(context: Context, session: Session) -> Context:
    """One settled run in the ledger."""
    run(context, 2)
    return context


Ask = Callable[[], dict[str, dict[str, Any]]]


@pytest.fixture
def problems(call: Call, settled: Context, brokers: Brokers) -> Ask:
    """The problems that `status` shows, by name; it ends with 1 exactly if there are any, and `doctor` has the same."""

    def ask() -> dict[str, dict[str, Any]]:
        shown = call("status", "orders", "-o", "json", code=None)
        troubles = shown.json[0]["troubles"]
        by_name = {trouble["name"]: trouble for trouble in troubles if trouble["severity"] == "problem"}
        assert shown.code == bool(by_name)
        assert ("orders: " in shown.err) == bool(by_name)
        doctor = call("doctor", "orders", "-o", "json", code=None)
        checks = [
            (trouble["name"], trouble["found"], tuple(trouble["choices"])) for trouble in doctor.json[0]["checks"]
        ]
        again = call("status", "orders", "-o", "json", code=None).json[0]["troubles"]
        # The minutes that a text counts may pass between two commands, so the doctor says what either status does.
        for pair in zip(troubles, again, strict=True):
            assert any((trouble["name"], trouble["found"], tuple(trouble["do"])) in checks for trouble in pair)
        assert doctor.code == 1 or not by_name
        return by_name

    return ask


def pause(session: Session, **values: bool) -> None:
    from airflow.models import DagModel
    from sqlalchemy import update

    with session() as opened:
        opened.execute(update(DagModel).where(DagModel.dag_id == "archive_orders").values(**values))


def test_a_paused_dag_with_lag(problems: Ask, airflow_run: MADE, session: Session, brokers: Brokers) -> None:
    airflow_run()
    pause(session, is_paused=True)
    assert problems() == {}
    brokers.logs[P0] = Range(0, 5)
    assert problems()["paused"]["do"] == ["airflow dags unpause archive_orders"]


def test_a_paused_audit_is_known(settled: Context, session: Session) -> None:
    from airflow.models import DagModel

    assert facts_of(settled.archive, datetime.now(UTC)).audit_paused is False
    with session() as opened:
        bundle = opened.get(DagModel, "archive_orders").bundle_name
        opened.add(DagModel(dag_id="audit_orders", bundle_name=bundle, is_paused=True))
    try:
        assert facts_of(settled.archive, datetime.now(UTC)).audit_paused is True
    finally:
        with session() as opened:
            opened.delete(opened.get(DagModel, "audit_orders"))


def test_damage_that_the_last_audit_found(problems: Ask, airflow_run: MADE, settled: Context) -> None:
    airflow_run()
    publish(settled.store, audit(settled.archive, settled.store, datetime.now(UTC)))
    assert list(problems()) == ["damaged"]


def test_no_dag(problems: Ask, session: Session) -> None:
    pause(session, is_stale=True)
    assert list(problems()) == ["no dag"]


def test_no_scheduler(problems: Ask, airflow_run: MADE, session: Session) -> None:
    from airflow.jobs.job import Job
    from sqlalchemy import delete

    airflow_run()
    with session() as opened:
        opened.execute(delete(Job))
    assert list(problems()) == ["no scheduler"]


def test_a_run_with_a_date_in_the_future(problems: Ask, airflow_run: MADE) -> None:
    airflow_run()
    in_future = datetime.now(UTC) + timedelta(days=400)
    name = airflow_run("running", logical_date=in_future)
    [trouble] = problems().values()
    assert trouble["name"] == "future date"
    assert trouble["found"].startswith(f"run {name} has the date {in_future:%Y-%m-%dT%H:%M:%S}Z")


def test_a_task_that_is_tried_again_for_long(problems: Ask, airflow_run: MADE, settled: Context) -> None:
    airflow_run()
    begun = datetime.now(UTC) - timedelta(hours=7)
    states = {"plan": "success", "archive": "up_for_retry"}
    airflow_run("running", begun, tasks=states, cause={"permanent": False, "cause": "no answer"}, attempts=4)
    assert list(problems()) == ["stuck"]
    [run_now] = [run for run in facts_of(settled.archive, datetime.now(UTC)).runs if run.state == "running"]
    assert run_now.failure is not None
    assert (run_now.begun, run_now.task, run_now.task_state) == (begun, "archive", "up_for_retry")
    assert (run_now.failure.cause, run_now.failure.attempts) == ("no answer", 4)


def test_a_backfill_of_old_hours_is_not_stuck(problems: Ask, airflow_run: MADE) -> None:
    from airflow.utils.types import DagRunType

    airflow_run()
    airflow_run("queued", datetime.now(UTC) - timedelta(hours=7), run_type=DagRunType.BACKFILL_JOB)
    assert problems() == {}


def test_a_failed_task_is_a_failure_before_airflow_ends_its_run(problems: Ask, airflow_run: MADE) -> None:
    airflow_run(minutes=5)
    airflow_run("running", tasks={"plan": "failed"}, cause={"permanent": True, "cause": "the group has moved"})
    [trouble] = problems().values()
    assert trouble["name"] == "failed for good"
    assert "failed in task plan: the group has moved" in trouble["found"]


def test_a_takeover_settles_the_failure_that_it_is_the_remedy_for(
    problems: Ask, airflow_run: MADE, settled: Context, brokers: Brokers
) -> None:
    brokers.logs[P0] = Range(0, 5)
    run(settled, 3, until="planned")
    planned = PlannedWork((hour(3).id,), (hour(3).id,))
    states, cause = {"plan": "success", "archive": "failed"}, {"permanent": True, "cause": "too large"}
    airflow_run("failed", tasks=states, cause=cause, works=planned)
    [trouble] = problems().values()
    assert trouble["do"][1] == f"airflow archive rebuild orders --run {hour(3).id}"
    finish(settled, rebuild_run(settled, hour(3).id))
    assert problems() == {}


@pytest.mark.parametrize("conf", [{"rebuild": {"run": "20261120T020000Z"}}, {"repair": ["20261120T020000Z"]}])
def test_an_overdue_run(problems: Ask, airflow_run: MADE, settled: Context, conf: dict[str, Any]) -> None:
    due = last_interval(settled.archive, datetime.now(UTC)).start
    airflow_run(due=due - timedelta(hours=1))
    assert list(problems()) == ["overdue"]
    # A rebuild, or a repair, stands for nothing of the schedule.
    from airflow.utils.types import DagRunType

    airflow_run(run_type=DagRunType.MANUAL, conf=conf)
    assert list(problems()) == ["overdue"]
    airflow_run(due=due + timedelta(hours=1))
    assert problems() == {}


def test_a_long_backfill_hides_no_run_of_the_schedule(airflow_run: MADE, settled: Context, monkeypatch: Any) -> None:
    from airflow.utils.types import DagRunType

    monkeypatch.setattr("kafka_archiver.orchestration.metadata.facts.LAST", 2)
    name = airflow_run(minutes=90)
    for number in range(3):
        airflow_run(minutes=50 - number, run_type=DagRunType.BACKFILL_JOB)
    facts = facts_of(settled.archive, datetime.now(UTC))
    assert [run.forward for run in facts.runs] == [False, False, True]
    assert facts.runs[-1].run_id == name


def test_what_ended_runs_took_and_finished_is_known(airflow_run: MADE, session: Session, settled: Context) -> None:
    from airflow.models import DagRun
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    airflow_run("success", minutes=90, attempts=2)
    name = airflow_run("failed", minutes=30, tasks={"plan": "success", "archive": "failed"}, attempts=3)
    airflow_run("running", minutes=1)
    with session() as opened:
        place = {"dag_id": "archive_orders", "task_id": "archive", "run_id": name}
        XComModel.set("cpu_seconds", 12.5, **place, session=opened)
        repaired, done = "20261120T010000Z", "20261120T020000Z"
        figures = {"runs": [repaired, done], "final": [repaired], "records": 6, "bytes": 60}
        XComModel.set("figures", figures, **{**place, "task_id": "close_hours"}, session=opened)
    with session() as opened:
        opened.scalars(select(DagRun).where(DagRun.run_id == name)).one().note = "settled by run x"
    facts = facts_of(settled.archive, datetime.now(UTC))
    # Five tasks, each at its third, or second, attempt.
    efforts = [Effort(retries=10, cpu_seconds=12.5), Effort(retries=5, cpu_seconds=None)]
    assert [run.effort for run in facts.runs] == [None, *efforts]
    assert [run.finished for run in facts.runs] == [(), ("20261120T020000Z",), ()]
    assert [run.wrote for run in facts.runs] == [None, Written(runs=1, records=6, bytes=60), None]
    assert [run.note for run in facts.runs] == [None, "settled by run x", None]


def test_a_database_that_does_not_answer_hides_nothing_else(
    problems: Ask, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.exc import OperationalError

    def refuse() -> None:
        raise OperationalError("SELECT 1", {}, Exception("no such table: dag"))

    monkeypatch.setattr("kafka_archiver.orchestration.metadata.facts.create_session", refuse)
    brokers.group[P1] = 1
    shown = problems()
    assert list(shown) == ["moved group", "airflow"]
    assert "does not answer: no such table: dag" in shown["airflow"]["found"]


# What failed tasks note.


class Task:
    def __init__(self) -> None:
        self.noted: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.noted[key] = value


@pytest.mark.parametrize(
    ("error", "permanent", "cause"),
    [
        (IntegrityError("2 objects\nare missing"), True, "2 objects are missing"),
        (PermanentError("PolicyError: 5 offsets are gone"), True, "PolicyError: 5 offsets are gone"),
        (TransientError("no answer"), False, "no answer"),
        (ValueError("odd"), False, "value error: odd"),
        (TransientError("x" * 5000), False, "x" * 1000 + " …"),
    ],
)
def test_a_failed_attempt_notes_its_cause_and_whether_it_is_permanent(
    error: Exception, permanent: bool, cause: str
) -> None:
    task = Task()
    leave_cause({"ti": task, "exception": error})
    assert task.noted == {CAUSE: {"permanent": permanent, "cause": cause}}


def test_what_is_noted_holds_no_secret() -> None:
    mask_secret("hunter2-for-the-note")
    task = Task()
    leave_cause({"ti": task, "exception": PermanentError("refused: hunter2-for-the-note")})
    assert task.noted[CAUSE]["cause"] == "refused: ***"


def test_nothing_is_noted_where_nobody_knows_why() -> None:
    task = Task()
    leave_cause({"ti": task})
    assert task.noted == {}


@pytest.mark.slow
def test_what_a_task_of_airflow_s_has_noted_is_found(
    archives: Path, archive: MakeArchive, connection: AddConnection, tmp_path: Path
) -> None:
    """Airflow runs tasks so, against its own API. There are no connections, which trying again does not change."""
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders"))
    with metadata_database(tmp_path):
        register_dags(DAG_FILES)
        assert dag_of(archive()).test().state == "failed"
        [run_facts] = facts_of(archive(), datetime.now(UTC)).runs
    assert (run_facts.state, run_facts.forward, run_facts.task) == ("failed", True, None)
    assert run_facts.failure is not None
    assert (run_facts.failure.task, run_facts.failure.attempts, run_facts.failure.permanent) == ("plan", 1, True)
    assert run_facts.failure.cause is not None
    assert run_facts.failure.cause.startswith(
        "there is no Airflow connection 'kafka_default' (source.kafka); add it with:"
    )

"""`airflow archive rebuild` against a metadata database of its own; a scheduler of the test's ends the tasks."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from kafka_archiver.ranges import Range
from kafka_archiver.steps.context import Context
from tests.dags.conftest import Call
from tests.support.brokers import Brokers
from tests.support.metadata import metadata_database, register_dags
from tests.support.runs import P0, run

pytestmark = pytest.mark.dags

DAGS = """
from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from airflow.providers.standard.operators.empty import EmptyOperator
hourly = CronDataIntervalTimetable("0 * * * *", timezone="UTC")
with DAG("archive_orders", schedule=hourly, params={"rebuild": Param(None, type=["null", "object"])}):
    EmptyOperator(task_id="plan") >> EmptyOperator(task_id="archive")
"""
RUN = "20261120T020000Z"
HOUR = "2026-11-20T00:00:00Z"
Session = Callable[[], Any]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "dags").mkdir()
    (folder / "dags" / "dags.py").write_text(DAGS)
    with metadata_database(folder):
        register_dags(folder / "dags")
        yield


@pytest.fixture
def session(database: None) -> Session:
    """Opens sessions on the database: a live scheduler, a DAG that may run, and no runs."""
    from airflow.jobs.job import Job
    from airflow.models import DagModel, DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete, update

    with create_session() as clean:
        for table in (DagRun, Job):
            clean.execute(delete(table))
        clean.execute(update(DagModel).values(is_paused=False, is_stale=False))
        clean.add(Job(job_type="SchedulerJob", state="running", latest_heartbeat=datetime.now(UTC)))
    return create_session


@pytest.fixture
def ends(session: Session, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """How each task ends, one at each look; then the run does."""
    from airflow.models import DagRun
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy import select

    from kafka_archiver.orchestration.cli import rebuild

    told = {"plan": "success", "archive": "success"}
    waiting = iter(range(100))

    def tick(_: float) -> None:
        assert next(waiting) < 50, "nothing comes to an end"
        with session() as opened:
            left = {ti.task_id: ti for ti in opened.scalars(select(TaskInstance).where(TaskInstance.state.is_(None)))}
            found = opened.scalars(select(DagRun)).one()
            if following := left.get("plan") or left.get("archive"):
                following.state = told[following.task_id]
                following.end_date = datetime.now(UTC)
                following.start_date = following.end_date - timedelta(seconds=7)
            else:
                found.state = "failed" if "failed" in told.values() else "success"

    monkeypatch.setattr(rebuild, "follow", partial(rebuild.follow, pause=tick))
    return told


def confs(session: Session) -> list[Any]:
    from airflow.models import DagRun
    from sqlalchemy import select

    with session() as opened:
        return [found.conf for found in opened.scalars(select(DagRun))]


@pytest.fixture
def settled(context: Context, brokers: Brokers) -> Context:
    """One settled run, with records of two hours."""
    run(context, 2)
    return context


@pytest.mark.parametrize(
    ("words", "conf"),
    [
        (("--run", RUN), {"run": RUN}),
        (("--run", "2026-11-20T02:00:00Z", "--keep"), {"run": RUN, "keep": True}),
        (("--run", "last"), {"run": RUN}),
        (("--hour", HOUR), {"hour": HOUR}),
        (("--hour", "2026-11-20T00:30:00", "--keep"), {"hour": HOUR, "keep": True}),
    ],
)
def test_it_starts_a_run_and_follows_it(
    call: Call,
    settled: Context,
    session: Session,
    ends: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    conf: dict[str, Any],
) -> None:
    capsys.readouterr()
    assert call("rebuild", "orders", *words) == 0
    assert confs(session) == [{"rebuild": conf}]
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"Rebuilding 6 offsets of run {RUN}."
    assert shown[1].startswith("Started run manual__")
    assert shown[2:4] == [
        "plan          success             7 s",
        "archive       success             7 s",
    ]
    assert shown[4].endswith("of archive_orders has ended: success.")


def test_a_failed_run_fails_the_command(
    call: Call, settled: Context, ends: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ends["archive"] = "failed"
    assert call("rebuild", "orders", "--run", RUN) == 1
    assert "archive       failed              7 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Rebuild what? Give --hour or --run, one of them."),
        (("--run", RUN, "--hour", HOUR), "Rebuild what? Give --hour or --run, one of them."),
        (("--run", "20261120T030000Z"), f"Archive orders has no run 20261120T030000Z; its last ones: {RUN}."),
        (("--hour", "2026-11-20T09:00:00Z"), "archive orders has no records of hour 2026-11-20T09:00:00Z; expected"),
    ],
)
def test_what_cannot_be_rebuilt(
    call: Call,
    settled: Context,
    session: Session,
    ends: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert call("rebuild", "orders", *words) == 1
    assert capsys.readouterr().err.startswith(message)
    assert confs(session) == []


def test_what_is_not_settled_or_gone_from_kafka(
    call: Call,
    settled: Context,
    brokers: Brokers,
    session: Session,
    ends: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(settled, 3, until="written")
    assert call("rebuild", "orders", "--run", "last") == 1
    assert "is not settled yet" in capsys.readouterr().err
    brokers.logs[P0] = Range(2, 3)
    assert call("rebuild", "orders", "--run", RUN) == 1
    assert "Kafka has removed everything before 2" in capsys.readouterr().err
    assert confs(session) == []


def test_a_paused_dag(
    call: Call, settled: Context, session: Session, ends: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow.models import DagModel
    from sqlalchemy import update

    with session() as opened:
        opened.execute(update(DagModel).values(is_paused=True))
    assert call("rebuild", "orders", "--run", RUN) == 1
    assert "airflow dags unpause archive_orders" in capsys.readouterr().err
    assert confs(session) == []


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_it_asks_on_a_terminal(
    call: Call,
    settled: Context,
    session: Session,
    ends: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    code: int,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: f"{answer}\n")
    assert call("rebuild", "orders", "--run", RUN) == code
    assert (
        f"Read 6 offsets of run {RUN} of archive orders again and replace the objects? [y/N]" in capsys.readouterr().err
    )
    assert len(confs(session)) == 1 - code


def test_nobody_carries_it_out(
    call: Call, settled: Context, session: Session, ends: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow.jobs.job import Job
    from sqlalchemy import delete

    with session() as opened:
        opened.execute(delete(Job))
    assert call("rebuild", "orders", "--run", RUN) == 0
    assert capsys.readouterr().out.count("No scheduler is alive") == 1

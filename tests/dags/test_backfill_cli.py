"""`airflow dags backfill` against a metadata database of its own; a scheduler of the test's ends the runs."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.metadata import Scheduler, database_with

pytestmark = pytest.mark.dags

DAY = datetime(2026, 11, 20, tzinfo=UTC)
DAGS = """
from airflow.sdk import DAG, CronDataIntervalTimetable, CronPartitionTimetable
from airflow.providers.standard.operators.empty import EmptyOperator
hourly = CronDataIntervalTimetable("0 * * * *", timezone="UTC")
with DAG("archive_t", schedule=hourly, max_active_runs=1):
    EmptyOperator(task_id="one")
with DAG("one_by_one", schedule=hourly, max_active_runs=5, default_args={"max_active_tis_per_dag": 1}):
    EmptyOperator(task_id="a")
with DAG("wide", schedule=hourly, max_active_runs=5):
    EmptyOperator(task_id="one", depends_on_past=True)
with DAG("moments", schedule="@hourly"):
    EmptyOperator(task_id="one")
with DAG("partitioned", schedule=CronPartitionTimetable("0 * * * *", timezone="UTC", key_format="%Y%m%dT%H")):
    EmptyOperator(task_id="one")
with DAG("by_hand", schedule=None):
    EmptyOperator(task_id="one")
"""
Command = Callable[..., int]
Session = Callable[[], Any]


def at(hour: int) -> datetime:
    return DAY + timedelta(hours=hour)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("airflow")
    with database_with(folder, DAGS):
        yield folder / "airflow.db"


@pytest.fixture
def session(database: Path) -> Session:
    """Opens sessions on the database: a live scheduler, DAGs that may run, and no runs."""
    from airflow.jobs.job import Job
    from airflow.models import DagModel, DagRun
    from airflow.models.backfill import Backfill, BackfillDagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete, update

    with create_session() as clean:
        for table in (BackfillDagRun, DagRun, Backfill, Job):
            clean.execute(delete(table))
        clean.execute(update(DagModel).values(is_paused=False, is_stale=False))
        clean.add(Job(job_type="SchedulerJob", state="running", latest_heartbeat=datetime.now(UTC)))
    return create_session


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    from kafka_archiver.orchestration.backfill import command

    told = Scheduler()
    monkeypatch.setattr(command, "wait", partial(command.wait, pause=told.tick))
    return told


@pytest.fixture
def backfill(session: Session, scheduler: Scheduler) -> Command:
    """Calls the command as Airflow's parser does. Returns the exit code."""
    from airflow.cli.cli_parser import get_parser

    def run(*words: str) -> int:
        try:
            args = get_parser().parse_args(["dags", "backfill", *words])
            args.func(args)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        return 0

    return run


def runs(session: Session, dag_id: str = "archive_t") -> list[Any]:
    from airflow.models import DagRun
    from sqlalchemy import select

    with session() as opened:
        return list(opened.scalars(select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.logical_date)))


def backfills(session: Session) -> list[Any]:
    from airflow.models.backfill import Backfill
    from sqlalchemy import select

    with session() as opened:
        return list(opened.scalars(select(Backfill).order_by(Backfill.id)))


def test_one_hour_is_one_run(backfill: Command, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    one = ("-s", "2026-11-20T05:00:00", "-e", "2026-11-20T05:00:00", "archive_t")
    assert backfill("--dry-run", "--output", "json", *one) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "interval_start": "2026-11-20T05:00:00Z",
            "interval_end": "2026-11-20T06:00:00Z",
            "partition_key": None,
            "existing_run": None,
            "action": "run",
        }
    ]
    assert runs(session) == []
    assert backfill(*one) == 0
    [run] = runs(session)
    assert (run.data_interval_start, run.data_interval_end) == (at(5), at(6))
    assert (run.run_type, run.state) == ("backfill", "success")


@pytest.mark.parametrize(
    ("dates", "hours"),
    [
        (["-s", "2026-11-20", "-e", "2026-11-20T02:59"], [0, 1, 2]),
        (["-s", "2026-11-20T01:30", "-e", "2026-11-20T03:00"], [2, 3]),
        (["--start-date", "2026-11-20"], [0]),
        (["--end-date", "2026-11-20T07:00+02:00"], [5]),
        (["-s", "2026-11-20", "-e", "2026-11-21"], list(range(25))),
    ],
)
def test_both_ends_are_included(
    backfill: Command, capsys: pytest.CaptureFixture[str], dates: list[str], hours: list[int]
) -> None:
    assert backfill("-n", "-o", "json", *dates, "archive_t") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["interval_start"] for row in rows] == [f"{at(hour):%Y-%m-%dT%H:%M:%SZ}" for hour in hours]


def test_dags_without_data_intervals(backfill: Command, capsys: pytest.CaptureFixture[str]) -> None:
    two = ("-s", "2026-11-20T05:00", "-e", "2026-11-20T06:00")
    for dag_id, keys in ("moments", [None, None]), ("partitioned", ["20261120T05", "20261120T06"]):
        assert backfill(*two, dag_id) == 0
        assert " has ended: 2 success.\n" in capsys.readouterr().out
        assert backfill("-n", "-o", "json", *two, dag_id) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [(r["interval_start"], r["interval_end"], r["action"]) for r in rows] == [
            ("2026-11-20T05:00:00Z", "2026-11-20T05:00:00Z", "leave"),
            ("2026-11-20T06:00:00Z", "2026-11-20T06:00:00Z", "leave"),
        ]
        assert [r["partition_key"] for r in rows] == keys


def test_the_list_for_people(
    backfill: Command, scheduler: Scheduler, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.ends[at(1)] = "failed"
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t") == 1
    capsys.readouterr()
    assert backfill("-n", "-s", "2026-11-20", "-e", "2026-11-20T02:00", "--rerun-failed-tasks", "archive_t") == 0
    shown = capsys.readouterr()
    assert [line.rstrip() for line in shown.out.splitlines()] == [
        "interval start       | interval end         | existing run | action",
        "=====================+======================+==============+==========",
        "2026-11-20T00:00:00Z | 2026-11-20T01:00:00Z | success      | leave",
        "2026-11-20T01:00:00Z | 2026-11-20T02:00:00Z | failed       | run again",
        "2026-11-20T02:00:00Z | 2026-11-20T03:00:00Z | -            | run",
    ]
    assert shown.err == ("Dry run, nothing was changed. 2 to run. Existing runs that stay as they are: 1 success.\n")
    assert len(backfills(session)) == 1


def test_says_how_each_run_ends_and_fails_when_one_fails(
    backfill: Command, scheduler: Scheduler, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.ends[at(1)] = "failed"
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T02:00", "-c", '{"n": 1}', "archive_t") == 1
    number = backfills(session)[0].id
    assert capsys.readouterr().out.splitlines() == [
        f"Backfill {number} of archive_t: 3 runs, at most 1 at a time.",
        "1/3  2026-11-20T00:00:00Z  success     7 s  backfill__2026-11-20T01:00:00+00:00",
        "2/3  2026-11-20T01:00:00Z  failed      7 s  backfill__2026-11-20T02:00:00+00:00",
        "3/3  2026-11-20T02:00:00Z  success     7 s  backfill__2026-11-20T03:00:00+00:00",
        f"Backfill {number} of archive_t has ended: 1 failed, 2 success.",
    ]
    assert [run.conf for run in runs(session)] == [{"n": 1}] * 3
    assert backfills(session)[0].completed_at is not None


def test_a_failed_run_says_why_and_where_its_log_is(
    backfill: Command, scheduler: Scheduler, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.ends[at(1)] = "failed"
    scheduler.causes[at(1)] = "PolicyError: 5 offsets of orders[0] are gone"
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t") == 1
    run_id = "backfill__2026-11-20T02%3A00%3A00%2B00%3A00"
    _, _, ended, why, log, _ = capsys.readouterr().out.splitlines()
    assert ended.startswith("2/2  2026-11-20T01:00:00Z  failed")
    assert why == "    one: PolicyError: 5 offsets of orders[0] are gone"
    assert log.startswith("    log: http")
    assert log.endswith(f"/dags/archive_t/runs/{run_id}/tasks/one")


def test_existing_runs_stay_unless_told_otherwise(
    backfill: Command, scheduler: Scheduler, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    three = ("-s", "2026-11-20", "-e", "2026-11-20T02:00", "archive_t")
    scheduler.ends[at(1)] = "failed"
    assert backfill(*three) == 1
    scheduler.ends.clear()

    capsys.readouterr()
    assert backfill(*three) == 1
    assert capsys.readouterr().out == (
        "Nothing to run. Existing runs that stay as they are: 1 failed, 2 success. "
        "--rerun-failed-tasks runs the failed ones again.\n"
    )
    assert [run.clear_number for run in runs(session)] == [0, 0, 0]

    assert backfill("--rerun-failed-tasks", *three) == 0
    assert [(run.clear_number, run.state) for run in runs(session)] == [(0, "success"), (1, "success"), (0, "success")]

    assert backfill(*three) == 0
    assert backfill("--reset-dagruns", *three) == 0
    assert [run.clear_number for run in runs(session)] == [1, 2, 1]
    assert len(backfills(session)) == 3


def test_a_failed_run_that_stays_fails_the_command(
    backfill: Command, scheduler: Scheduler, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler.ends[at(0)] = "failed"
    assert backfill("-s", "2026-11-20", "archive_t") == 1
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t") == 1
    assert "1 success. Existing runs that stay as they are: 1 failed." in capsys.readouterr().out


def test_backwards(backfill: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T02:00", "--run-backwards", "archive_t") == 0
    ended = [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert ended == ["2026-11-20T02:00:00Z", "2026-11-20T01:00:00Z", "2026-11-20T00:00:00Z"]


def test_max_active_runs_is_the_dags(backfill: Command, session: Session) -> None:
    assert backfill("-s", "2026-11-20", "archive_t") == 0
    assert backfill("-s", "2026-11-20T01:00", "--max-active-runs", "3", "archive_t") == 0
    assert backfill("-s", "2026-11-20", "--reset-dagruns", "wide") == 0
    assert [item.max_active_runs for item in backfills(session)] == [1, 3, 5]


def test_runs_whose_tasks_wait_for_each_other_begin_one_by_one(backfill: Command, session: Session) -> None:
    """As those of an archive: side by side they would go on in any order."""
    assert backfill("-s", "2026-11-20", "one_by_one") == 0
    assert backfill("-s", "2026-11-20T01:00", "--max-active-runs", "3", "one_by_one") == 0
    assert [item.max_active_runs for item in backfills(session)] == [1, 3]


def test_a_paused_dag_is_refused(backfill: Command, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    pause(session)
    assert backfill("-s", "2026-11-20", "archive_t") == 1
    assert capsys.readouterr().err == (
        "DAG archive_t is paused, so its runs would stay queued; nothing was changed. Unpause it first, which starts "
        "its scheduled runs too: airflow dags unpause archive_t\n"
    )
    assert backfills(session) == []


def pause(session: Session) -> None:
    from airflow.models import DagModel
    from sqlalchemy import update

    with session() as opened:
        opened.execute(update(DagModel).values(is_paused=True))


def test_says_why_nothing_moves(
    backfill: Command,
    scheduler: Scheduler,
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from airflow.jobs.job import Job
    from sqlalchemy import delete

    from kafka_archiver.orchestration.backfill import command

    def trouble(seconds: float) -> None:
        if scheduler.ticks == 0:
            pause(session)
        if scheduler.ticks == 1:
            with session() as opened:
                opened.execute(delete(Job))
        if scheduler.ticks < 2:
            scheduler.ticks += 1
        else:
            scheduler.tick(seconds)

    monkeypatch.setattr(command, "wait", partial(command.wait, pause=trouble))
    assert backfill("-s", "2026-11-20", "archive_t") == 0
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "DAG archive_t is paused: its queued runs do not start. To start them: `airflow dags unpause archive_t`.",
        "No scheduler is alive, so no run goes on. Check that `airflow scheduler` runs.",
    ]


def test_interrupted(
    backfill: Command, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafka_archiver.orchestration.backfill import command

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "wait", partial(command.wait, pause=interrupt))
    assert backfill("-s", "2026-11-20", "archive_t") == 130
    number = backfills(session)[0].id
    assert f"/api/v2/backfills/{number}/cancel" in capsys.readouterr().out
    assert [run.state for run in runs(session)] == ["queued"]
    # And it blocks the next, with the same hint.
    assert backfill("-s", "2026-11-20T03:00", "archive_t") == 1
    error = capsys.readouterr().err
    assert "Another backfill of archive_t is not finished" in error
    assert f"/api/v2/backfills/{number}/cancel" in error


def test_a_finished_backfill_does_not_block(backfill: Command, session: Session, scheduler: Scheduler) -> None:
    """The scheduler notices only every 30 seconds that a backfill is complete."""
    from airflow.models.backfill import Backfill
    from sqlalchemy import update

    assert backfill("-s", "2026-11-20", "archive_t") == 0
    with session() as opened:
        opened.execute(update(Backfill).values(completed_at=None))
    assert backfill("-s", "2026-11-20T01:00", "archive_t") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["archive_t"], "No dates given"),
        (["-s", "2026-11-20", "-e", "2026-11-19", "archive_t"], "is after --end-date"),
        (["-s", "2026-11-20", "-c", "{", "archive_t"], "--conf is not JSON"),
        (["-s", "2026-11-20", "-c", "[1]", "archive_t"], "expected a JSON object"),
        (["-s", "2026-11-20", "archive_x"], "Airflow has no DAG 'archive_x'"),
        (["-s", "2026-11-20T05:10", "archive_t"], "starts at 2026-11-20T05:10:00+00:00"),
        (["-s", "2126-11-20", "archive_t"], "future dates"),
        (["-s", "2026-11-20", "by_hand"], "non-periodic schedule"),
        (["-s", "2026-11-20", "wide"], "(with --reset-dagruns or --rerun-failed-tasks)"),
    ],
)
def test_refusals_are_one_line(
    backfill: Command, session: Session, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert backfill(*words) == 1
    shown = capsys.readouterr()
    assert message in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""
    assert backfills(session) == []


@pytest.mark.parametrize("words", [["-m"], ["--local"], ["-t", "plan"], ["--treat-dag-as-regex"], ["--pool", "p"]])
def test_options_that_are_gone_say_what_to_do(
    backfill: Command, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert backfill("-s", "2026-11-20", "archive_t", *words) == 2
    assert f"{words[0]} does not exist in Airflow 3: " in capsys.readouterr().err


def test_asks_before_finished_runs_are_run_again(
    backfill: Command, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("--reset-dagruns", "-s", "2026-11-20", "archive_t")
    assert backfill(*one) == 0
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n\n", raising=False)
    assert backfill(*one) == 1
    assert [run.clear_number for run in runs(session)] == [0]
    assert backfill("--yes", *one) == 0
    monkeypatch.setattr("sys.stdin.readline", lambda: "y\n", raising=False)
    assert backfill(*one) == 0
    assert [run.clear_number for run in runs(session)] == [2]


def test_nobody_sees_a_backfill_half_done(backfill: Command, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that took up a run which Airflow then deletes again ("database is locked") dies of it."""
    from airflow.serialization.definitions.dag import SerializedDAG

    create = SerializedDAG.create_dagrun
    seen = []

    def look_and_create(self: Any, **given: Any) -> Any:
        created = create(self, **given)
        with sqlite3.connect(database, timeout=0) as other:
            [count] = other.execute("SELECT COUNT(*) FROM dag_run").fetchone()
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("UPDATE job SET state = state")
        seen.append(count)
        return created

    monkeypatch.setattr(SerializedDAG, "create_dagrun", look_and_create)
    assert backfill("-s", "2026-11-20", "-e", "2026-11-20T02:00", "archive_t") == 0
    assert seen == [0, 0, 0]


def test_another_airflow_is_noticed_before_anything_is_created(
    backfill: Command, session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow.models import backfill as internals

    monkeypatch.setattr(internals, "_create_backfill", lambda dag_id: None)
    assert backfill("-s", "2026-11-20", "-B", "-c", '{"n": 1}', "archive_t") == 1
    assert capsys.readouterr().err.endswith(
        "Use: airflow backfill create --dag-id archive_t --from-date 2026-11-20T00:00:00+00:00 "
        "--to-date 2026-11-20T00:00:00+00:00 --reprocess-behavior none --run-backwards --dag-run-conf '{\"n\": 1}'\n"
    )
    assert runs(session) == []


def test_a_parser_that_cannot_be_extended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow.cli import cli_parser

    from kafka_archiver.orchestration.backfill.definition import extend_dags

    monkeypatch.setattr(cli_parser, "airflow_commands", [])
    monkeypatch.setattr("sys.argv", ["airflow", "dags", "list"])
    assert extend_dags() == []
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.argv", ["airflow", "dags", "backfill", "x"])
    assert extend_dags() == []
    assert "use `airflow backfill create" in capsys.readouterr().err

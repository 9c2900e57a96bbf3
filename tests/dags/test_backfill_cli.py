"""`airflow dags backfill` against a metadata database of its own; a scheduler of the test's ends the runs."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import Call, Session, caller, pause
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


def at(hour: int) -> datetime:
    return DAY + timedelta(hours=hour)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The metadata database, with the DAGs above."""
    folder = tmp_path_factory.mktemp("airflow")
    with database_with(folder, DAGS):
        yield folder / "airflow.db"


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    from kafka_archiver.orchestration.backfill import wait as following

    recording = Scheduler()
    monkeypatch.setattr(following, "wait", partial(following.wait, pause=recording.tick))
    return recording


@pytest.fixture
def backfill(session: Session, scheduler: Scheduler, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls `airflow dags backfill`."""
    return caller(["dags", "backfill"], capsys)


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


def test_one_hour_is_one_run(backfill: Call, session: Session) -> None:
    hour_words = ("-s", "2026-11-20T05:00:00", "-e", "2026-11-20T05:00:00", "archive_t")
    assert backfill("--dry-run", "--output", "json", *hour_words).json == [
        {
            "interval_start": "2026-11-20T05:00:00Z",
            "interval_end": "2026-11-20T06:00:00Z",
            "partition_key": None,
            "existing_run": None,
            "action": "run",
        }
    ]
    assert runs(session) == []
    backfill(*hour_words)
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
def test_both_ends_are_included(backfill: Call, dates: list[str], hours: list[int]) -> None:
    rows = backfill("-n", "-o", "json", *dates, "archive_t").json
    assert [row["interval_start"] for row in rows] == [f"{at(hour):%Y-%m-%dT%H:%M:%SZ}" for hour in hours]


def test_dags_without_data_intervals(backfill: Call) -> None:
    two = ("-s", "2026-11-20T05:00", "-e", "2026-11-20T06:00")
    for dag_id, keys in ("moments", [None, None]), ("partitioned", ["20261120T05", "20261120T06"]):
        assert " has ended: 2 success.\n" in backfill(*two, dag_id).out
        rows = backfill("-n", "-o", "json", *two, dag_id).json
        assert [(r["interval_start"], r["interval_end"], r["action"]) for r in rows] == [
            ("2026-11-20T05:00:00Z", "2026-11-20T05:00:00Z", "leave"),
            ("2026-11-20T06:00:00Z", "2026-11-20T06:00:00Z", "leave"),
        ]
        assert [r["partition_key"] for r in rows] == keys


def test_the_list_for_people(backfill: Call, scheduler: Scheduler, session: Session) -> None:
    scheduler.ends[at(1)] = "failed"
    backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t", code=1)
    shown = backfill("-n", "-s", "2026-11-20", "-e", "2026-11-20T02:00", "--rerun-failed-tasks", "archive_t")
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
    backfill: Call, scheduler: Scheduler, session: Session
) -> None:
    scheduler.ends[at(1)] = "failed"
    shown = backfill("-s", "2026-11-20", "-e", "2026-11-20T02:00", "-c", '{"n": 1}', "archive_t", code=1)
    number = backfills(session)[0].id
    assert shown.lines == [
        f"Backfill {number} of archive_t: 3 runs, at most 1 at a time.",
        "1/3  2026-11-20T00:00:00Z  success     7 s  backfill__2026-11-20T01:00:00+00:00",
        "2/3  2026-11-20T01:00:00Z  failed      7 s  backfill__2026-11-20T02:00:00+00:00",
        "3/3  2026-11-20T02:00:00Z  success     7 s  backfill__2026-11-20T03:00:00+00:00",
        f"Backfill {number} of archive_t has ended: 1 failed, 2 success.",
    ]
    assert [run.conf for run in runs(session)] == [{"n": 1}] * 3
    assert backfills(session)[0].completed_at is not None


def test_a_failed_run_says_why_and_where_its_log_is(backfill: Call, scheduler: Scheduler, session: Session) -> None:
    scheduler.ends[at(1)] = "failed"
    scheduler.causes[at(1)] = "PolicyError: 5 offsets of orders[0] are gone"
    run_id = "backfill__2026-11-20T02%3A00%3A00%2B00%3A00"
    shown = backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t", code=1)
    _, _, ended, why, log, _ = shown.lines
    assert ended.startswith("2/2  2026-11-20T01:00:00Z  failed")
    assert why == "    one: PolicyError: 5 offsets of orders[0] are gone"
    assert log.startswith("    log: http")
    assert log.endswith(f"/dags/archive_t/runs/{run_id}/tasks/one")


def test_existing_runs_stay_unless_told_otherwise(backfill: Call, scheduler: Scheduler, session: Session) -> None:
    three = ("-s", "2026-11-20", "-e", "2026-11-20T02:00", "archive_t")
    scheduler.ends[at(1)] = "failed"
    backfill(*three, code=1)
    scheduler.ends.clear()

    assert backfill(*three, code=1).out == (
        "Nothing to run. Existing runs that stay as they are: 1 failed, 2 success. "
        "--rerun-failed-tasks runs the failed ones again.\n"
    )
    assert [run.clear_number for run in runs(session)] == [0, 0, 0]

    backfill("--rerun-failed-tasks", *three)
    assert [(run.clear_number, run.state) for run in runs(session)] == [(0, "success"), (1, "success"), (0, "success")]

    backfill(*three)
    backfill("--reset-dagruns", *three)
    assert [run.clear_number for run in runs(session)] == [1, 2, 1]
    assert len(backfills(session)) == 3


def test_a_failed_run_that_stays_fails_the_command(backfill: Call, scheduler: Scheduler) -> None:
    scheduler.ends[at(0)] = "failed"
    backfill("-s", "2026-11-20", "archive_t", code=1)
    assert (
        "1 success. Existing runs that stay as they are: 1 failed."
        in backfill("-s", "2026-11-20", "-e", "2026-11-20T01:00", "archive_t", code=1).out
    )


def test_backwards(backfill: Call) -> None:
    ended = [
        line.split()[1]
        for line in backfill(
            "-s", "2026-11-20", "-e", "2026-11-20T02:00", "--run-backwards", "archive_t"
        ).out.splitlines()[1:-1]
    ]
    assert ended == ["2026-11-20T02:00:00Z", "2026-11-20T01:00:00Z", "2026-11-20T00:00:00Z"]


def test_max_active_runs_is_the_dags(backfill: Call, session: Session) -> None:
    # Runs whose tasks wait for each other, as those of an archive, begin one by one: side by side any would go on.
    for dag in "archive_t", "one_by_one":
        backfill("-s", "2026-11-20", dag)
        backfill("-s", "2026-11-20T01:00", "--max-active-runs", "3", dag)
    backfill("-s", "2026-11-20", "--reset-dagruns", "wide")
    assert [item.max_active_runs for item in backfills(session)] == [1, 3, 1, 3, 5]


def test_a_paused_dag_is_refused(backfill: Call, session: Session) -> None:
    pause(session)
    assert backfill("-s", "2026-11-20", "archive_t", code=1).err == (
        "DAG archive_t is paused, so its runs would stay queued; nothing was changed. Unpause it first, which starts "
        "its scheduled runs too: airflow dags unpause archive_t\n"
    )
    assert backfills(session) == []


def test_says_why_nothing_moves(
    backfill: Call, scheduler: Scheduler, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.jobs.job import Job
    from sqlalchemy import delete

    from kafka_archiver.orchestration.backfill import wait as following

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

    monkeypatch.setattr(following, "wait", partial(following.wait, pause=trouble))
    assert backfill("-s", "2026-11-20", "archive_t").out.splitlines()[1:3] == [
        "DAG archive_t is paused: its queued runs do not start. To start them: `airflow dags unpause archive_t`.",
        "No scheduler is alive, so no run goes on. Check that `airflow scheduler` runs.",
    ]


def test_interrupted(backfill: Call, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_archiver.orchestration.backfill import wait as following

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "wait", partial(following.wait, pause=interrupt))
    shown = backfill("-s", "2026-11-20", "archive_t", code=130)
    number = backfills(session)[0].id
    assert f"/api/v2/backfills/{number}/cancel" in shown.out
    assert [run.state for run in runs(session)] == ["queued"]
    # And it blocks the next, with the same hint.
    error = backfill("-s", "2026-11-20T03:00", "archive_t", code=1).err
    assert "Another backfill of archive_t is not finished" in error
    assert f"/api/v2/backfills/{number}/cancel" in error


def test_a_finished_backfill_does_not_block(backfill: Call, session: Session, scheduler: Scheduler) -> None:
    """The scheduler notices only every 30 seconds that a backfill is complete."""
    from airflow.models.backfill import Backfill
    from sqlalchemy import update

    backfill("-s", "2026-11-20", "archive_t")
    with session() as opened:
        opened.execute(update(Backfill).values(completed_at=None))
    backfill("-s", "2026-11-20T01:00", "archive_t")


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
def test_refusals_are_one_line(backfill: Call, session: Session, words: list[str], message: str) -> None:
    shown = backfill(*words, code=1)
    assert message in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out == ""
    assert backfills(session) == []


@pytest.mark.parametrize("words", [["-m"], ["--local"], ["-t", "plan"], ["--treat-dag-as-regex"], ["--pool", "p"]])
def test_options_that_are_gone_say_what_to_do(backfill: Call, words: list[str]) -> None:
    assert f"{words[0]} does not exist in Airflow 3: " in backfill("-s", "2026-11-20", "archive_t", *words, code=2).err


def test_asks_before_finished_runs_are_run_again(
    backfill: Call, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour_words = ("--reset-dagruns", "-s", "2026-11-20", "archive_t")
    backfill(*hour_words)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n\n", raising=False)
    backfill(*hour_words, code=1)
    assert [run.clear_number for run in runs(session)] == [0]
    backfill("--yes", *hour_words)
    monkeypatch.setattr("sys.stdin.readline", lambda: "y\n", raising=False)
    backfill(*hour_words)
    assert [run.clear_number for run in runs(session)] == [2]


def test_nobody_sees_a_backfill_half_done(backfill: Call, started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that took up a run which Airflow then deletes again ("database is locked") dies of it."""
    from airflow.serialization.definitions.dag import SerializedDAG

    create = SerializedDAG.create_dagrun
    states_seen = []

    def look_and_create(self: Any, **arguments: Any) -> Any:
        created = create(self, **arguments)
        with sqlite3.connect(started, timeout=0) as other:
            [count] = other.execute("SELECT COUNT(*) FROM dag_run").fetchone()
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("UPDATE job SET state = state")
        states_seen.append(count)
        return created

    monkeypatch.setattr(SerializedDAG, "create_dagrun", look_and_create)
    backfill("-s", "2026-11-20", "-e", "2026-11-20T02:00", "archive_t")
    assert states_seen == [0, 0, 0]


def test_another_airflow_is_noticed_before_anything_is_created(
    backfill: Call, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models import backfill as internals

    monkeypatch.setattr(internals, "_create_backfill", lambda dag_id: None)
    assert backfill("-s", "2026-11-20", "-B", "-c", '{"n": 1}', "archive_t", code=1).err.endswith(
        "Use: airflow backfill create --dag-id archive_t --from-date 2026-11-20T00:00:00+00:00 "
        "--to-date 2026-11-20T00:00:00+00:00 --reprocess-behavior none --run-backwards --dag-run-conf '{\"n\": 1}'\n"
    )
    assert runs(session) == []


def test_a_parser_that_cannot_be_extended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow.cli import cli_parser

    from kafka_archiver.orchestration.backfill.command import extend_dags

    monkeypatch.setattr(cli_parser, "airflow_commands", [])
    monkeypatch.setattr("sys.argv", ["airflow", "dags", "list"])
    assert extend_dags() == []
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.argv", ["airflow", "dags", "backfill", "x"])
    assert extend_dags() == []
    assert "use `airflow backfill create" in capsys.readouterr().err

"""`airflow archive rebuild` against a metadata database of its own; a scheduler of the test's ends the tasks."""

import sys
from typing import Any

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.orchestration.cli import rebuild
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import Call, Session, confs, pause
from tests.support.brokers import Brokers
from tests.support.runs import P0, run

pytestmark = pytest.mark.dags

RUN = "20261120T020000Z"
HOUR = "2026-11-20T00:00:00Z"
COUNTS = "1 run with 6 archived records in 4 objects of 6,000 bytes, of 2 hours"


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
        (("--run", RUN, "--fewer"), {"run": RUN, "fewer": True}),
        (("--hour", HOUR), {"hour": HOUR}),
        (("--hour", "2026-11-20T00:30:00", "--keep"), {"hour": HOUR, "keep": True}),
    ],
)
def test_it_starts_a_run_and_follows_it(
    call: Call, settled: Context, session: Session, ends: dict[str, str], words: tuple[str, ...], conf: dict[str, Any]
) -> None:
    shown = call("rebuild", "orders", *words).out.splitlines()
    assert confs(session) == [{"rebuild": conf}]
    assert shown[:2] == [COUNTS, f"Rebuilding 6 offsets of run {RUN}."]
    assert shown[2].startswith("Started run manual__")
    assert shown[3:5] == [
        "plan          success             7 s",
        "archive       success             7 s",
    ]
    assert shown[5].endswith("of archive_orders has ended: success.")


@pytest.mark.parametrize("words", [("--run", RUN), ("--hour", HOUR)])
def test_a_dry_run_only_counts(
    call: Call, settled: Context, session: Session, ends: dict[str, str], words: tuple[str, ...]
) -> None:
    assert call("rebuild", "orders", *words, "--dry-run").out == f"{COUNTS}\n"
    assert confs(session) == []


@pytest.mark.parametrize("limit", ["MANY_OFFSETS", "MANY_HOURS"])
def test_a_large_one_needs_consent_in_a_script_too(
    call: Call,
    settled: Context,
    session: Session,
    ends: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    monkeypatch.setattr(rebuild, limit, 1)
    shown = call("rebuild", "orders", "--hour", HOUR, code=1)
    assert shown.err.startswith(f"The rebuild would replace {COUNTS}, and there is no terminal to ask on. Nothing was")
    assert f"`airflow archive rebuild orders --hour {HOUR} --yes`" in shown.err
    assert confs(session) == []
    call("rebuild", "orders", "--hour", HOUR, "--yes")
    assert confs(session) == [{"rebuild": {"hour": HOUR}}]


def test_a_failed_run_fails_the_command(call: Call, settled: Context, ends: dict[str, str]) -> None:
    ends["archive"] = "failed"
    shown = call("rebuild", "orders", "--run", RUN, code=1).out.splitlines()
    assert shown[4:6] == [
        "archive       failed              7 s",
        "    archive: no cause recorded (killed, its result not stored, or not a task of an archive)",
    ]
    assert shown[6].startswith("    log: http")
    assert "has ended: failed." in shown[7]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give either --hour or --run."),
        (("--run", RUN, "--hour", HOUR), "Give either --hour or --run."),
        (("--run", "20261120T030000Z"), f"Archive orders has no run 20261120T030000Z. Its last runs: {RUN}."),
        (("--hour", "2026-11-20T09:00:00Z"), "archive orders has no records of hour 2026-11-20T09:00:00Z; expected"),
    ],
)
def test_what_cannot_be_rebuilt(
    call: Call, settled: Context, session: Session, ends: dict[str, str], words: tuple[str, ...], message: str
) -> None:
    assert call("rebuild", "orders", *words, code=1).err.startswith(message)
    assert confs(session) == []


def test_a_run_that_has_written_nothing_may_be_rebuilt_too_whatever_kafka_has_of_it(
    call: Call, settled: Context, brokers: Brokers, session: Session, ends: dict[str, str]
) -> None:
    """It is the way out of a run that cannot be finished as it was planned; losses are a matter of policy then."""
    brokers.logs[P0] = Range(0, 5)
    run(settled, 3, until="planned")
    brokers.logs[P0] = Range(4, 5)
    assert "\nRebuilding 2 offsets of run 20261120T030000Z.\n" in call("rebuild", "orders", "--run", "last").out
    assert confs(session) == [{"rebuild": {"run": "20261120T030000Z"}}]


def test_a_paused_dag(call: Call, settled: Context, session: Session, ends: dict[str, str]) -> None:
    pause(session)
    assert "airflow dags unpause archive_orders" in call("rebuild", "orders", "--run", RUN, code=1).err
    assert confs(session) == []


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_it_asks_on_a_terminal(
    call: Call,
    settled: Context,
    session: Session,
    ends: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: f"{answer}\n")
    asked = f"Read 6 offsets of run {RUN} of archive orders again and replace the objects? [y/N]"
    assert asked in call("rebuild", "orders", "--run", RUN, code=code).err
    assert len(confs(session)) == 1 - code


def test_nobody_carries_it_out(call: Call, settled: Context, session: Session, ends: dict[str, str]) -> None:
    from airflow.jobs.job import Job
    from sqlalchemy import delete

    with session() as opened:
        opened.execute(delete(Job))
    assert call("rebuild", "orders", "--run", RUN).out.count("No scheduler is alive") == 1

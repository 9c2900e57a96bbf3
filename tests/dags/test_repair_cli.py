"""`airflow archive repair` against a metadata database of its own; a scheduler of the test's ends the tasks."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.object_keys import progress_document, run_document
from kafka_archiver.orchestration.dag_run.params import checked_run
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import Call, Session, confs, pause
from tests.support.brokers import Brokers
from tests.support.runs import P0, P1, run

pytestmark = pytest.mark.dags
RUN = "20261120T020000Z"
# As if Spark had written them: in truth there are none.
OBJECTS = [f"orders/o+{partition}+{start}.jsonl.gz" for partition in (0, 1) for start in (0, 2)]


@pytest.fixture
def settled(context: Context) -> Context:
    """One settled run, whose four objects have been deleted."""
    run(context, 2)
    return context


def stored(context: Context) -> dict[str, str]:
    return {stat.key: stat.etag for stat in context.store.list("")}


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(
    call: Call, settled: Context, brokers: Brokers, session: Session
) -> None:
    settled.store.put(progress_document("orders"), b"{")
    brokers.logs[P0] = Range(2, 3)
    before = stored(settled)
    # That nobody would carry out its run is no matter then.
    pause(session)
    document = call("repair", "orders", "--dry-run", "--output", "json").json
    assert (document["archive"], document["repaired"], document["left"]) == ("orders", False, [])
    gone, *remaining = OBJECTS
    expected: list[dict[str, Any]] = [
        {"action": "write again", "run": RUN, "what": key, "rows": 1 if "+2." in key else 2, "reason": None}
        for key in remaining
    ]
    reason = "the object has offsets from 0 on, the log of orders[0] now starts at 2"
    expected.append({"action": "lost", "run": RUN, "what": gone, "rows": 2, "reason": reason})
    expected.append(
        {"action": "compute", "run": None, "what": progress_document("orders"), "rows": None, "reason": None}
    )
    assert document["actions"] == expected
    assert stored(settled) == before
    assert confs(session) == []


def test_offsets_that_no_client_can_read_are_given_up_by_name(call: Call, context: Context, session: Session) -> None:
    run(context, 2, until="planned")
    words = ("repair", "orders", "--run", RUN, "--lost-offsets", "orders:0:1-2")
    assert call(*words, "--dry-run", "--output", "json").json["repaired"] is False
    assert context.ledger.set_aside(RUN).document is None
    for _ in range(2):
        shown = call(*words)
        assert f"`airflow dags trigger archive_orders` goes on with run {RUN}, without these offsets" in shown.err
    aside = context.ledger.set_aside(RUN).document
    assert aside
    assert [(unread.topic, unread.partition, unread.start, unread.end) for unread in aside.unread] == [
        ("orders", 0, 1, 2)
    ]
    # It starts no run, and audits nothing.
    assert confs(session) == []
    refused = call("repair", "orders", "--run", RUN, "--lost-offsets", "orders:0:1-200", code=1)
    assert "does not read [3, 200); it reads [0, 3) there" in refused.err
    assert "belong together" in call("repair", "orders", "--lost-offsets", "orders:0:1-2", code=1).err


def test_there_is_nothing_to_repair(call: Call, context: Context, session: Session) -> None:
    run(context, 2, until="planned")
    assert "Repair of orders: there is nothing to repair" in call("repair", "orders").out
    assert confs(session) == []


def test_it_starts_a_run_and_tells_what_is_left(
    call: Call, settled: Context, session: Session, ends: dict[str, str]
) -> None:
    """The tasks of the test's DAG write nothing: what the command does is audited, and not taken for done."""
    shown = call("repair", "orders", "--yes", code=1)
    assert confs(session) == [{"repair": [RUN]}]
    assert "Repair of orders: done" in shown.out
    assert "run the repair once more" not in shown.err, "that would do the same"
    assert "archive       success             7 s" in shown.err
    assert f"{OBJECTS[0]}: object-missing: found: nothing" in shown.err


def test_what_could_not_be_judged_before_is_another_repair(call: Call, settled: Context, session: Session) -> None:
    settled.store.delete(run_document("orders", RUN, "plan"))
    shown = call("repair", "orders", "--yes", "--output", "json", code=1)
    assert {action["action"] for action in shown.json["actions"]} == {"restore"}
    assert "run the repair once more" in shown.err


def test_a_failed_run_fails_the_command(call: Call, settled: Context, session: Session, ends: dict[str, str]) -> None:
    ends["archive"] = "failed"
    message = "The run of archive_orders has ended: failed. The log of the task that failed"
    assert message in call("repair", "orders", code=1).err


def test_a_paused_dag(call: Call, settled: Context, brokers: Brokers, session: Session) -> None:
    brokers.logs[P0] = Range(2, 3)
    pause(session)
    before = stored(settled)
    assert "airflow dags unpause archive_orders" in call("repair", "orders", "--yes", code=1).err
    assert stored(settled) == before, "nothing is given up either"
    assert confs(session) == []


def test_what_needs_no_run_is_done_while_the_dag_is_paused(
    call: Call, settled: Context, brokers: Brokers, session: Session
) -> None:
    pause(session)
    brokers.logs.update({P0: Range(3, 3), P1: Range(3, 3)})
    before = stored(settled)
    error_text = call("repair", "orders", "--lost", OBJECTS[0], code=1).err
    assert "3 objects would be recorded as lost for ever" in error_text
    assert "`airflow archive repair orders --yes` agrees to all" in error_text
    assert stored(settled) == before, "nobody was asked"
    shown = call("repair", "orders", "--yes", "--output", "json")
    assert {(a["action"], a["what"]) for a in shown.json["actions"]} == {("lost", key) for key in OBJECTS}
    assert f"Run {RUN}+r1: 4 objects of run {RUN} recorded as lost." in shown.err
    assert confs(session) == []
    assert "6 offsets lost for ever" in call("audit", "orders").out


def test_an_object_may_be_given_up_by_name(call: Call, settled: Context, session: Session) -> None:
    words = [word for key in OBJECTS[:2] for word in ("--lost", key)]
    actions = call("repair", "orders", "--dry-run", "--output", "json", *words).json["actions"]
    assert [(a["action"], a["what"]) for a in actions] == [
        *(("write again", key) for key in OBJECTS[2:]),
        *(("lost", key) for key in OBJECTS[:2]),
    ]


def test_a_key_that_is_no_damaged_object(call: Call, settled: Context, session: Session) -> None:
    before = stored(settled)
    error_text = call("repair", "orders", "--lost", "orders/typo", code=1).err
    assert "orders/typo is neither missing nor damaged, or not of archive orders" in error_text
    assert stored(settled) == before
    assert confs(session) == []


def test_what_nobody_can_mend_is_left_and_told(call: Call, context: Context, session: Session) -> None:
    run(context, 2, until="planned")
    context.store.put("orders/date=2026-11-20/hour=05/notes.txt", b"x")
    shown = call("repair", "orders", "--output", "json", code=1)
    [left] = shown.json["left"]
    assert left.startswith("orders/date=2026-11-20/hour=05/notes.txt: unexplained")
    assert left in shown.err


def test_an_archive_that_there_is_not(call: Call, orders: Path) -> None:
    assert "No archive 'payments'" in call("repair", "payments", code=1).err


@pytest.mark.parametrize(("answer", "count"), [("n", 0), ("y", 1)])
def test_it_asks_on_a_terminal(
    call: Call,
    settled: Context,
    brokers: Brokers,
    session: Session,
    ends: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    count: int,
) -> None:
    brokers.logs[P0] = Range(2, 3)
    before = stored(settled)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: f"{answer}\n")
    question = "2 records will be lost for ever. Repair archive orders: 3 × write again, 1 × lost? [y/N]"
    assert question in call("repair", "orders", code=None).err
    assert len(confs(session)) == count
    assert (stored(settled) == before) == (not count)


@pytest.mark.parametrize("wrong", ["last", "2026-11-20", RUN.lower()])
def test_a_run_that_is_told_to_repair_what_is_no_run_says_so(wrong: str) -> None:
    with pytest.raises(ConfigError, match=rf"in the run's `repair`: expected names of runs .*, found '{wrong}'"):
        checked_run(wrong)
    assert checked_run(f"{RUN}+r2") == f"{RUN}+r2"

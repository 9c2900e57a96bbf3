"""`airflow archive doctor`, `clean` and `status --hours`: what they answer, and with which exit code."""

import io
import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.documents import Stored
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.complete_hours import Verdict
from kafka_archiver.model.layouts.hourly import hour_path
from kafka_archiver.model.manifest import Intent
from kafka_archiver.model.object_keys import ObjectName, object_key
from kafka_archiver.model.progress import Progress
from kafka_archiver.orchestration.cli.status import hours_table
from kafka_archiver.orchestration.dags.audit import audit_dag
from kafka_archiver.orchestration.terminal.output import Table, render
from kafka_archiver.state.status import HourStatus
from kafka_archiver.store.memory import MemoryStore
from kafka_archiver.values.checksum import crc32
from kafka_archiver.work.rebuild import rebuild_run
from tests.dags.conftest import AddConnection, Call, Shown
from tests.support.brokers import Brokers
from tests.support.runs import DAY, run

pytestmark = [pytest.mark.dags, pytest.mark.usefixtures("quiet")]

SOUND = {"retention.ms": "604800000", "message.timestamp.after.max.ms": "3600000"}


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing else is left there."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark and Java are installed, as far as anybody can see."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("spark-submit", "java"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} 17 >&2\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delenv("JAVA_HOME", raising=False)


def checks(shown: Shown) -> dict[str, dict[str, Any]]:
    [document] = shown.json
    assert document["archive"] == "orders"
    return {check["name"]: check for check in document["checks"]}


def test_a_sound_archive(call: Call, context: Context, brokers: Brokers) -> None:
    brokers.settings = SOUND
    run(context, 2)
    call("acknowledge", "orders", "never-audited", "--by", "ann")
    before = {stat.key for stat in context.store.list("")}
    report = checks(call("doctor", "orders", "-o", "json"))
    # A warning where no C compiler was at hand.
    assert report.pop("reader")["state"] in ("ok", "warning")
    assert {name: check["state"] for name, check in report.items()} == dict.fromkeys(
        [
            "connection spark_default", "secrets", "spark-submit", "java", "format",
            "connection kafka_default", "connection aws_default", "store", "create-only",
            "replace-only", "put, get, head, list, delete", "clocks", "multipart", "brokers", "topic orders",
            "retention of orders", "timestamps of orders", "group", "topic ids", "never audited", "runs",
            "schema registry",
        ],
        "ok",
    )  # fmt: skip
    assert report["brokers"]["found"] == "3 brokers of cluster a-cluster at broker:9092"
    assert report["topic orders"]["found"] == "2 partitions, id id-of-orders"
    assert report["group"]["found"] == "archiver-orders has no members and an offset for 2 of 2 partitions"
    assert report["schema registry"]["found"] == "not configured"
    assert {stat.key for stat in context.store.list("")} == before


def test_warnings_are_no_failure(call: Call, context: Context, brokers: Brokers) -> None:
    run(context, 2)
    run(context, 3, until="written")
    brokers.settings = {**SOUND, "retention.ms": "7200000"}
    report = checks(call("doctor", "orders", "-o", "json"))
    assert {name for name, check in report.items() if check["state"] != "ok"} - {"reader"} == {
        "retention of orders",
        "never audited",
        "unfinished run",
    }
    assert "records are kept for 2 hours, a run is due every 1 hour" in report["retention of orders"]["found"]
    assert report["unfinished run"]["found"].startswith("run 20261120T030000Z, planned at 2026-11-20T04:05:00Z, is not")


def test_brokers_that_do_not_answer(
    call: Call, context: Context, brokers: Brokers, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The doctor has the keys of transforms, as a run has.
    monkeypatch.setenv("AIRFLOW_CONN_PII", json.dumps({"conn_type": "generic", "password": "k" * 20}))
    schema = "value: {decode: json, schema: [{name: n, type: string}]}"
    orders.write_text(orders.read_text().replace("[orders]", f"[orders], {schema}"))
    with orders.open("a") as file:
        file.write("transform: {steps: [{hash: {fields: n, key: pii}}]}\n")
    brokers.failure = TransientError("no answer from the Kafka brokers at broker:9092")
    shown = call("doctor", code=1)
    assert shown.err == "orders: 1 problem\n"
    table = shown.lines
    assert table[0] == "orders"
    assert [word.strip() for word in table[1].split("|")] == ["check", "state", "found"]
    assert any(line.startswith("brokers ") and "| problem" in line for line in table)
    # Unfolded, however long.
    assert "problem: brokers" in table
    assert "  This means: the other checks of Kafka are skipped." in table


def test_a_driver_on_kubernetes_without_a_secret_is_found_before_a_run_is_planned(
    call: Call, context: Context, brokers: Brokers, connection: AddConnection, orders: Path
) -> None:
    connection("spark_default", "spark", {"deploy-mode": "cluster"}, host="k8s://https://cluster", port=443)
    report = checks(call("doctor", "orders", "-o", "json", code=1))
    assert "kubectl create secret generic archive-orders" in report["secrets"]["found"]
    with orders.open("a") as file:
        file.write("spark: {kubernetes_secret: archive-orders}\n")
    assert checks(call("doctor", "orders", "-o", "json", code=None))["secrets"]["state"] == "ok"


def test_every_missing_connection_is_named_with_the_command_that_adds_it(
    call: Call, orders: Path, connection: AddConnection
) -> None:
    with orders.open("a") as file:
        file.write("alerts: {on_failure: [hook], on_audit: [hook, auditors]}\n")
    report = checks(call("doctor", "orders", "-o", "json", code=1))
    for name in ("kafka_default", "aws_default", "spark_default", "hook"):
        assert f"airflow connections add {name} --conn-type" in report[f"connection {name}"]["found"]
    assert "(alerts.on_failure)" in report["connection hook"]["found"]
    assert "(alerts.on_audit)" in report["connection auditors"]["found"]
    assert "brokers" not in report
    assert "store" not in report


def test_without_the_brokers_connection_the_store_is_tried(
    call: Call, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT")
    report = checks(call("doctor", "orders", "-o", "json", code=1))
    assert report["multipart"]["state"] == "ok"
    assert "brokers" not in report


@pytest.mark.parametrize("missing", [True, False])
def test_with_a_wrong_store_the_brokers_are_tried(
    call: Call, context: Context, brokers: Brokers, orders: Path, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    """A connection that is missing, or one that leads to what is no store."""
    brokers.settings = {**SOUND, "retention.ms": "7200000"}
    if missing:
        monkeypatch.delenv("AIRFLOW_CONN_AWS_DEFAULT")
    else:

        def refuse(*_: object) -> None:
            raise PermanentError("there is no bucket of that name")

        monkeypatch.setattr(MemoryStore, "list", refuse)
        monkeypatch.setattr(MemoryStore, "version", refuse)
    report = checks(call("doctor", "orders", "-o", "json", code=1))
    assert report["brokers"]["state"] == report["topic orders"]["state"] == "ok"
    assert report["retention of orders"]["state"] == "warning"
    problems = {name for name, check in report.items() if check["state"] == "problem"}
    assert problems == ({"connection aws_default"} if missing else {"store", "ledger"})


def leave(context: Context) -> str:
    """An upload of a killed attempt, of offsets that are settled."""
    run(context, 2)
    key = object_key(ObjectName("orders", 0, 0), hour_path(498_650), ".jsonl.gz")
    context.store.upload_part(context.store.start_upload(key), 1, b"sent", crc32(b"sent"))
    return key


def test_clean(call: Call, context: Context, own_temporary_directory: Path) -> None:
    key = leave(context)
    folder = own_temporary_directory / "kafka-archiver-task-1"
    folder.mkdir()
    (own_temporary_directory / "precious").mkdir()
    for words, removed in ((("--dry-run",), False), ((), True)):
        report = call("clean", "orders", "--older-than", "0s", "-o", "json", *words).json
        assert report["removed"] is removed
        assert [(leftover["archive"], leftover["kind"], leftover["what"]) for leftover in report["leftovers"]] == [
            ("orders", "upload", key),
            (None, "temporary", str(folder)),
        ]
        assert bool(list(context.store.list_uploads(""))) is not removed
        assert folder.exists() is not removed
    assert (own_temporary_directory / "precious").exists()
    assert call("clean", "--older-than", "0s").lines == ["Leftovers", "(none)"]


def test_clean_leaves_what_is_young(call: Call, context: Context) -> None:
    leave(context)
    assert call("clean", "orders", "-o", "json").json == {"removed": True, "leftovers": []}
    assert len(list(context.store.list_uploads(""))) == 1


@pytest.mark.parametrize(("answer", "words", "removed"), [("n", (), 0), ("", (), 0), ("y", (), 1), ("", ("--yes",), 1)])
def test_clean_asks_on_a_terminal(
    call: Call, context: Context, monkeypatch: pytest.MonkeyPatch, answer: str, words: tuple[str, ...], removed: int
) -> None:
    leave(context)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: f"{answer}\n")
    shown = call("clean", "orders", "--older-than", "0s", *words)
    assert ("Remove 1 upload? [y/N]" in shown.err) is (not words)
    assert shown.lines[0] == f"Leftovers: 1 upload; {'removed' if removed else 'nothing was removed'}"
    assert len(list(context.store.list_uploads(""))) == 1 - removed


class Clock(datetime):
    """It is always `moment`."""

    moment = DAY

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return cls.moment


def test_the_task_removes_what_is_a_day_old_and_looks_at_each_run_for_a_week(
    context: Context, own_temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_archiver.orchestration.dags.audit.datetime", Clock)
    # The store's clock, too.
    MemoryStore(context.store.url.removeprefix("memory://").partition("/")[0], clock=lambda: Clock.moment)
    monkeypatch.setattr(Clock, "moment", DAY + timedelta(hours=4))
    key = leave(context)
    dead = key.replace("orders+0", "orders+1")
    context.store.put(dead, b"of a zombie")
    intent = Intent(archive="orders", run="20261120T020000Z", attempt=1, keys=(dead,))
    assert context.ledger.put_intent(intent, Stored(None, None))
    (own_temporary_directory / "kafka-archiver-task-1").mkdir()
    clean_up = audit_dag(context.archive).get_task("clean_up").python_callable  # type: ignore[attr-defined]

    def left(days: int) -> tuple[bool, bool]:
        monkeypatch.setattr(Clock, "moment", DAY + timedelta(days=days, hours=4))
        clean_up()
        assert list(own_temporary_directory.iterdir()) == []
        return bool(list(context.store.list_uploads(""))), context.store.head(dead) is not None

    assert left(days=0) == (True, True)
    assert left(days=9) == (False, True)
    assert left(days=2) == (False, False)


@pytest.mark.parametrize("text", ["", "1", "d", "-1d", "1y", "1.5h", "999999d"])
def test_a_wrong_duration(call: Call, context: Context, text: str) -> None:
    shown = call("clean", "orders", f"--older-than={text}", code=2)
    assert "expected a time like 90s, 30m, 12h, 1d or 2w" in shown.err


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is twenty past four on the day of the runs."""
    monkeypatch.setattr(Clock, "moment", DAY + timedelta(hours=4, minutes=20))
    monkeypatch.setattr("kafka_archiver.orchestration.cli.status.datetime", Clock)


@pytest.mark.usefixtures("four")
def test_the_last_hours(call: Call, context: Context, brokers: Brokers) -> None:
    run(context, 2)
    proof = context.ledger.hour(498_650)
    assert proof is not None
    gone = {"hour_start": DAY + timedelta(hours=3), "status": "incomplete", "reason": "a log began later"}
    assert context.ledger.put_hour(proof.model_copy(update=gone), Stored(None, None))
    table = call("status", "orders", "--hours", "4").lines
    assert table[table.index("") + 1 :] == [
        "1 of 4 hours are past and incomplete: what is missing will not come by itself",
        "hour                 | status     | rows | bytes | objects | late rows | dead letters | complete as of       "
        "| closed by",
        "=====================+============+======+=======+=========+===========+==============+======================"
        "+=================",
        "2026-11-20T02:00:00Z | complete   |    2 | 2,000 |       2 |         0 |            0 | 2026-11-20T03:05:00Z "
        "| 20261120T020000Z",
        "2026-11-20T03:00:00Z | incomplete |    2 | 2,000 |       2 |         0 |            0 | 2026-11-20T03:05:00Z "
        "| 20261120T020000Z",
        "2026-11-20T04:00:00Z | -          |    0 |     0 |       0 |         0 |            0 | -                    "
        "| -",
        "1 earlier hour without a proof",
    ]
    [document] = call("status", "orders", "-o", "json", "--hours").json
    assert len(document["hours"]) == 24
    names = "hour_start status rows bytes objects late_rows dead_letters complete_as_of closed_by reason"
    hour_line = ["2026-11-20T02:00:00Z", "complete", 2, 2000, 2, 0, 0, "2026-11-20T03:05:00Z", "20261120T020000Z", None]
    assert (" ".join(document["hours"][-3]), [*document["hours"][-3].values()]) == (names, hour_line)
    assert document["hours"][-2]["reason"] == "a log began later"


def test_what_was_lost_is_shown_for_ever(call: Call, context: Context) -> None:
    assert context.ledger.put_progress(Progress(archive="orders", lost=1234), Stored(None, None))
    assert call("status", "orders").lines[1] == "1,234 offsets lost for ever"
    assert call("status", "orders", "-o", "json").json[0]["lost"] == 1234


def test_a_rebuild_that_nobody_finishes_stops_nobody(call: Call, context: Context, brokers: Brokers) -> None:
    """The next run gives it up; then what it has written goes, and that it was is on record."""
    brokers.settings = SOUND
    run(context, 2)
    [rebuilt] = rebuild_run(context, "20261120T020000Z").runs
    assert rebuilt == "20261120T020000Z+r1"
    written = object_key(ObjectName("orders", 0, 0, revision=1), hour_path(498_650), ".jsonl.gz")
    context.store.put(written, b"of the rebuild")
    intent = Intent(archive="orders", run=rebuilt, attempt=1, keys=(written,))
    assert context.ledger.put_intent(intent, Stored(None, None))
    assert call("status", "orders", "-o", "json").json[0]["unfinished"] == []
    assert call("plan", "orders", "-i", "2026-11-20T03:00:00Z", "-o", "json").json["finished_first"] == []
    check = checks(call("doctor", "orders", "-o", "json"))["unfinished rebuild"]
    assert rebuilt in check["found"]
    assert "airflow archive rebuild orders --run 20261120T020000Z" in check["choices"][0]
    clean = ("clean", "orders", "--older-than", "0s", "-o", "json")
    assert call(*clean).json["leftovers"] == []
    run(context, 3)
    states = {entry["run"]: entry["state"] for entry in call("runs", "orders", "-o", "json").json}
    assert states == {"20261120T020000Z": "settled", rebuilt: "given_up", "20261120T030000Z": "settled"}
    assert [(entry["kind"], entry["run"]) for entry in call(*clean).json["leftovers"]] == [("rebuild", rebuilt)]
    assert context.store.head(written) is None


def test_nothing_is_folded_where_a_program_reads() -> None:
    key, title, pipe = "k" * 500, "t " * 300, io.StringIO()
    render(Table(("where", "rows"), [(key, 1)], title), Console(file=pipe, width=80))
    assert pipe.getvalue().splitlines()[::3] == [title, f"{key} |    1"]


def test_what_is_wrong_is_red_on_a_terminal() -> None:
    counts = dict.fromkeys(("rows", "bytes", "objects", "late_rows", "dead_letters"), 0)
    verdicts: tuple[Verdict, ...] = ("incomplete", "complete")
    hours = [
        HourStatus(hour_start=DAY, status=verdict, complete_as_of=None, closed_by=None, reason=None, **counts)
        for verdict in verdicts
    ]
    console = Console(force_terminal=True, color_system="standard", width=120)
    with console.capture() as capture:
        render(hours_table(hours), console)
    assert "\x1b[1;31m1 of 2 hours are past and incomplete" in capture.get()
    assert "\x1b[31mincomplete" in capture.get()
    assert "\x1b[31mcomplete" not in capture.get()

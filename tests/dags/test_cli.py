"""`airflow archive`: what it answers, for people and for programs, and how it says that it cannot."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.orchestration.cli.names import find_archive
from kafka_archiver.orchestration.dag_run.schedule import last_interval
from kafka_archiver.values.documents import isoformat
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.plan import plan
from tests.dags.conftest import Call
from tests.support.brokers import Brokers
from tests.support.runs import P0, P1, run

pytestmark = [pytest.mark.dags, pytest.mark.usefixtures("quiet")]


def test_list(call: Call, orders: Path) -> None:
    store = yaml.safe_load(orders.read_text())["store"]["url"]
    assert call("list", "--output", "json").json == [
        {
            "archive": "orders",
            "dag_id": "archive_orders",
            "topics": ["orders"],
            "pattern": None,
            "group": "archiver-orders",
            "store": store,
            "schedule": "0 * * * *",
            "timezone": "UTC",
            "file": str(orders),
            "error": None,
        }
    ]
    heads, _, row = call("list").lines[:3]
    assert [word.strip() for word in heads.split("|")] == ["archive", "dag id", "topics", "store", "schedule", "file"]
    assert row.startswith("orders  | archive_orders | orders | memory://")


def test_a_wrong_file_hides_nothing_from_the_list(call: Call, orders: Path) -> None:
    (orders.parent / "wrong.yaml").write_text("archive: wrong\nnonsense: 1\n")
    shown = call("list", "-o", "yaml", code=1)
    assert [listed["archive"] for listed in yaml.safe_load(shown.out)] == ["orders"]
    assert "`nonsense` is not a key of an archive" in shown.err


def test_validate_finds_every_problem(call: Call, orders: Path) -> None:
    assert call("validate", "-o", "json").json == [{"file": str(orders), "archive": "orders", "problems": []}]

    (orders.parent / "a.yaml").write_text("archive: a\nnonsense: 1\n")
    (orders.parent / "b.yaml").write_text(
        "archive: b\nsource: {topics: [t]}\nstore: {url: s3://b/p, format: avro, content: value}\n"
    )
    (orders.parent / "copy.yaml").write_text(orders.read_text())
    shown = call("validate", "-o", "json", code=1)
    by_file = {Path(entry["file"]).name: entry for entry in shown.json}
    assert list(by_file) == ["a.yaml", "b.yaml", "copy.yaml", "orders.yaml"]
    assert by_file["a.yaml"]["archive"] is None
    assert len(by_file["a.yaml"]["problems"]) == 3
    assert by_file["b.yaml"]["problems"] == [
        "store.content: format avro has record, found 'value'; to store columns, set `source.value.decode` "
        "(json needs `schema`, too)"
    ]
    assert "is taken by" in by_file["copy.yaml"]["problems"][0]
    assert by_file["orders.yaml"]["problems"] == []
    assert shown.err == "Files with problems: 3 of 4.\n"


def test_validate_says_who_checks_sql(call: Call, orders: Path) -> None:
    orders.write_text(orders.read_text() + "transform: {where: nope(value)}\n")
    assert call("validate").lines[-1] == "Spark checks the SQL of orders: airflow archive plan orders"


def test_validate_finds_functions_and_runs_none(call: Call, orders: Path) -> None:
    yaml = orders.read_text()
    (orders.parent / "validated.py").write_text("raise SystemExit\ndef split(record): ...\n")
    for function, problem in {"split": "", "splt": "has no function 'splt'; found split."}.items():
        orders.write_text(f"{yaml}transform: {{mapper: validated:{function}}}\n")
        [document] = call("validate", "-o", "json", code=1 if problem else 0).json
        assert problem in "".join(document["problems"])
        assert bool(document["problems"]) == bool(problem)


def test_validate_names_a_time_zone_in_which_airflow_stops(call: Call, orders: Path) -> None:
    orders.write_text(orders.read_text() + "timezone: Australia/Lord_Howe\n")
    [document] = call("validate", "-o", "json", code=1).json
    assert "`timezone`: with this schedule Airflow does not get past" in document["problems"][0]


def test_validate_some(call: Call, orders: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.yml"
    elsewhere.write_text("archive: x\nsource: {topics: [t]}\nstore: {url: ftp}\n")
    (orders.parent / "broken.yaml").write_text("archive: [")
    starts = [
        "file          | archive | result",
        "==============+=========+===",
        "orders.yaml   | orders  | ok",
        "elsewhere.yml | -       | `store.url`",
    ]
    shown = call("validate", "orders", str(elsewhere), code=1).lines
    assert [line[: len(start)] for line, start in zip(shown, starts, strict=True)] == starts
    assert "not YAML" in call("validate", "broken", code=1).out
    message = f"No archive 'nobody' in {orders.parent}; found: broken.yaml, orders.\n"
    assert call("validate", "nobody", code=1).err == message


def test_status(call: Call, context: Context, orders: Path, brokers: Brokers) -> None:
    orders.write_text(orders.read_text() + "health: {max_age: 1h}\n")
    run(context, 2)
    brokers.logs[P0] = Range(0, 5)
    run(context, 3, until="planned")
    [document] = call("status", "orders", "-o", "json").json
    last = document.pop("last_commit")
    assert (last["run"], last["committed_at"]) == ("20261120T020000Z", "2026-11-20T03:06:00Z")
    assert document.pop("hours_open") > 24
    # As on the page and in `/archiver/health`.
    verdicts = {check["name"]: check["verdict"] for check in document.pop("health")}
    ok = dict.fromkeys(("answers", "lag", "hours", "records", "runs", "brokers"), "ok")
    assert verdicts == ok | {"age": "failing", "plans": "warning", "audit": "warning"}
    assert document.pop("last_run") == {
        "run": "20261120T020000Z", "committed_at": "2026-11-20T03:06:00Z", "offsets": 6, "rows": 6, "bytes": 6_000,
        "objects": 4, "dead_letters": 0, "lost": 0, "seconds": None, "cpu_seconds": None, "retries": None,
    }  # fmt: skip
    assert (document.pop("audit"), document.pop("adopted")) == (None, None)
    assert (document.pop("error"), document.pop("incomplete")) == (None, [])
    partition = [
        "topic",
        "partition",
        "committed",
        "archived_to",
        "log_start",
        "log_end",
        "lag",
        "oldest_unarchived",
        "gone",
    ]
    assert document == {
        "archive": "orders",
        "lag": 2,
        "oldest_unarchived": "2026-11-20T03:00:00Z",
        "closed_until": "2026-11-20T03:00:00Z",
        "unfinished": ["20261120T030000Z"],
        "lost": 0,
        "dead_letters": 0,
        "accepted": [],
        "troubles": [
            {
                "name": "never audited",
                "severity": "warning",
                "found": "no audit has ever compared the store with the ledger",
                "do": [
                    "airflow dags trigger audit_orders",
                    "if this is accepted: airflow archive acknowledge orders never-audited",
                ],
            },
            {
                "name": "unfinished run",
                "severity": "warning",
                "found": "run 20261120T030000Z, planned at 2026-11-20T04:05:00Z, is not finished, and no DAG run is "
                "at work on it; the next run finishes it first",
                "do": ["airflow dags trigger archive_orders"],
            },
        ],
        "partitions": [
            dict(zip(partition, ("orders", 0, 3, 3, 0, 5, 2, "2026-11-20T03:00:00Z", 0), strict=True)),
            dict(zip(partition, ("orders", 1, 3, 3, 0, 3, 0, None, 0), strict=True)),
        ],
    }
    lines = call("status").lines
    [age, how] = lines[7:9]
    assert age.startswith("failing: age: hours are closed until 2026-11-20T03:00:00Z, ")
    assert how == "  - airflow archive status orders --hours 24"
    assert lines[:7] + lines[9:] == [
        "orders: lag 2, the oldest of 2026-11-20T03:00:00Z, last commit 2026-11-20T03:06:00Z (run 20261120T020000Z), "
        "closed until 2026-11-20T03:00:00Z, unfinished: 20261120T030000Z",
        "topic  | partition | committed | archived to | log start | log end | lag | oldest unarchived",
        "=======+===========+===========+=============+===========+=========+=====+=====================",
        "orders |         0 |         3 |           3 |         0 |       5 |   2 | 2026-11-20T03:00:00Z",
        "orders |         1 |         3 |           3 |         0 |       3 |   0 | -",
        "last run: 6 rows in 4 objects of 6,000 bytes, 0 dead letters",
        "last audit: none yet",
        "warning: never audited: no audit has ever compared the store with the ledger",
        "  - airflow dags trigger audit_orders",
        "  - if this is accepted: airflow archive acknowledge orders never-audited",
        "warning: unfinished run: run 20261120T030000Z, planned at 2026-11-20T04:05:00Z, is not finished, and no DAG "
        "run is at work on it; the next run finishes it first",
        "  - airflow dags trigger archive_orders",
    ]


def test_a_finding_is_accepted_by_name_listed_and_taken_back(call: Call, context: Context) -> None:
    run(context, 2)
    name = "never-audited"
    [waits] = call("acknowledge", "orders", "-o", "json").json["findings"]
    assert (waits["finding"], waits["state"], waits["by"]) == (name, "waits", None)
    done = call("acknowledge", "orders", name, "--by", "ann", "--note", "soon", "-o", "json").json
    [accepted] = done["findings"]
    assert (accepted["state"], accepted["by"], accepted["note"]) == ("accepted", "ann", "soon")
    assert call("acknowledge", "orders", "--list", "-o", "json").json["findings"] == [accepted]
    [line] = [line for line in call("status", "orders", code=None).lines if line.startswith("accepted: ")]
    assert line.startswith(
        "accepted: never audited: no audit has ever compared the store with the ledger. Accepted by ann"
    )
    checks = call("doctor", "orders", "-o", "json", code=None).json[0]["checks"]
    assert [c["state"] for c in checks if c["name"] == "never audited"] == ["ok"]
    [back] = call("acknowledge", "orders", name, "--undo", "-o", "json").json["findings"]
    assert back["state"] == "taken back"
    assert "never audited" in call("status", "orders", code=None).out
    for wrong in ("dead-letters:7", "nonsense of mine"):
        shown = call("acknowledge", "orders", wrong, code=1)
        assert "airflow archive acknowledge" in shown.err


def test_status_of_an_archive_that_never_ran(call: Call, context: Context) -> None:
    assert call("status").lines[0] == (
        "orders: lag 6, the oldest of 2026-11-20T00:00:00Z, nothing committed yet, no hour closed yet"
    )


def _no_answer(*_: Any, **__: Any) -> None:
    raise TransientError("no answer from the store")


def test_brokers_that_do_not_answer_leave_what_the_ledger_knows(
    call: Call, context: Context, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(context, 2)
    end = "2026-11-20T03:00:00Z"
    brokers.failure = TransientError("no answer from the Kafka brokers")
    shown = call("status", "-o", "json", code=1)
    [known] = shown.json
    assert (known["error"], known["lag"], known["closed_until"]) == ("no answer from the Kafka brokers", None, end)
    assert known["partitions"][0] == {"topic": "orders", "partition": 0, "archived_to": 3}
    assert shown.err == "orders: no answer from the Kafka brokers\n"
    shown = call("status", "orders", code=1)
    assert shown.lines[0] == f"orders: lag unknown, closed until {end}"
    assert "failing: answers: no answer from the Kafka brokers" in shown.lines
    # Without the store, nothing is known.
    monkeypatch.setattr(type(context.ledger), "progress", _no_answer)
    monkeypatch.setattr(type(context.ledger), "stored_progress", _no_answer)
    shown = call("status", "orders", "-o", "json", code=1)
    assert (shown.out, shown.err) == ("", "no answer from the store\n")


def test_several_archives_each_once_and_no_other(call: Call, context: Context, orders: Path) -> None:
    for name in ("payments", "returns"):
        (orders.parent / f"{name}.yaml").write_text(orders.read_text().replace("archive: orders", f"archive: {name}"))
    named = call("status", "payments", "orders", "payments", "-o", "json").json
    assert [entry["archive"] for entry in named] == ["payments", "orders"]
    shown = call("status", "orders", "nobody", code=1)
    assert (shown.out, shown.err.startswith("No archive 'nobody'")) == ("", True)


def test_plan(call: Call, context: Context, brokers: Brokers) -> None:
    two = ("plan", "orders", "--interval-start", "2026-11-20T02:00:00Z")
    preview = call(*two, "-o", "json").json
    document = preview.pop("plan")
    assert preview == {
        "archive": "orders",
        "run": "20261120T020000Z",
        "exists": False,
        "offsets": 6,
        "chunks": 4,
        "policies_triggered": [],
        "next_run_stops_at": [],
        "finished_first": [],
    }
    assert document["interval"] == {"start": "2026-11-20T02:00:00Z", "end": "2026-11-20T03:00:00Z"}
    assert [p["ranges"] for p in document["partitions"]] == [[[0, 3]], [[0, 3]]]
    assert context.ledger.runs() == {}

    assert call(*two, "--backfill").lines == [
        "orders: interval [2026-11-20 02:00:00, 2026-11-20 03:00:00) UTC, run 20261120T020000Z, "
        "backfill: 2 offsets in 2 chunks",
        "topic  | partition | ranges | offsets | lost | log start | log end",
        "=======+===========+========+=========+======+===========+========",
        "orders |         0 | [2, 3) |       1 |    0 |         0 |       3",
        "orders |         1 | [2, 3) |       1 |    0 |         0 |       3",
    ]


def test_plan_of_an_interval_that_has_one(call: Call, context: Context, brokers: Brokers) -> None:
    run(context, 1)
    run(context, 2, until="planned")
    brokers.logs[P0] = Range(0, 9)
    document = call("plan", "orders", "-i", "2026-11-20T01:00:00Z", "-o", "json").json
    assert (document["exists"], document["offsets"], document["finished_first"]) == (True, 6, ["20261120T020000Z"])
    shown = call("plan", "orders", "-i", "2026-11-20T01:00:00Z").out
    assert "Planned at 2026-11-20T02:05:00Z: a run would replay this plan." in shown
    assert "A run would first finish 20261120T020000Z." in shown


def test_plan_of_an_interval_that_has_one_says_what_the_next_run_stops_at(
    call: Call, context: Context, brokers: Brokers
) -> None:
    run(context, 2)
    brokers.logs[P0] = Range(5, 9)
    [ahead] = call("plan", "orders", "-i", "2026-11-20T02:00:00Z", "-o", "json").json["next_run_stops_at"]
    assert ahead.startswith("2 offsets of orders[0] are gone")
    assert "the next run would stop at" in call("plan", "orders", "-i", "2026-11-20T02:00:00Z").out


def test_plan_is_of_the_last_complete_interval(call: Call, context: Context) -> None:
    before = datetime.now(UTC)
    end = datetime.fromisoformat(call("plan", "orders", "-o", "json").json["plan"]["interval"]["end"])
    assert before - timedelta(hours=1) < end <= datetime.now(UTC)


def test_plan_is_of_what_came_since_the_last_interval_was_planned(
    call: Call, context: Context, orders: Path, brokers: Brokers
) -> None:
    last = last_interval(find_archive("orders"), datetime.now(UTC))
    plan(replace(context, clock=lambda: datetime.now(UTC)), last, "scheduled")
    brokers.logs[P0] = Range(0, 9)
    document = call("plan", "orders", "-o", "json").json
    assert (document["exists"], document["offsets"], document["finished_first"]) == (False, 6, [last.id])
    assert call("plan", "orders", "-i", isoformat(last.start), "-o", "json").json["exists"]


def test_plan_says_which_policies_decided(call: Call, context: Context, orders: Path, brokers: Brokers) -> None:
    run(context, 2)
    brokers.logs[P0], brokers.group = Range(5, 9), {P1: 1}
    arguments = ("plan", "orders", "-i", "2026-11-20T03:00:00Z", "-o", "json")
    shown = call(*arguments, code=1)
    assert shown.out == ""
    assert "2 offsets of orders[0] are gone" in shown.err

    with orders.open("a") as file:
        file.write("policies: {lost_offsets: record_loss, moved_group: follow_ledger}\n")
    assert call(*arguments).json["policies_triggered"] == [
        "missing_group: resume_from_ledger: group archiver-orders has no offset for orders[0], but the ledger says it "
        "is archived up to 3",
        "lost_offsets: record_loss: 2 offsets of orders[0] are gone: the archive stands at 3, but retention has "
        "removed everything before 5",
        "moved_group: follow_ledger: group archiver-orders stands at 1 in orders[1], but the ledger says it is "
        "archived up to 3",
    ]


def test_plan_of_no_interval(call: Call, context: Context) -> None:
    assert call("plan", "orders", "-i", "2026-11-20T02:10:00Z", code=1).err == (
        "No interval of the schedule '0 * * * *' starts at 2026-11-20T02:10:00Z; "
        "the interval that includes this time starts at 2026-11-20T02:00:00Z.\n"
    )


def test_runs(call: Call, context: Context, brokers: Brokers) -> None:
    assert call("runs", "orders").out == "(none)\n"
    run(context, 2)
    brokers.logs[P0] = Range(0, 1_203)
    run(context, 3, until="committed")
    run(context, 4, until="written")
    run(context, 5, until="planned")
    assert call("runs", "orders").lines == [
        "run              | origin    | planned at           | offsets | objects |  rows |     bytes | state",
        "=================+===========+======================+=========+=========+=======+===========+==========",
        "20261120T050000Z | scheduled | 2026-11-20T06:05:00Z |       0 |       0 |     0 |         0 | written",
        "20261120T040000Z | scheduled | 2026-11-20T05:05:00Z |       0 |       0 |     0 |         0 | written",
        "20261120T030000Z | scheduled | 2026-11-20T04:05:00Z |   1,200 |     600 | 1,200 | 1,200,000 | committed",
        "20261120T020000Z | scheduled | 2026-11-20T03:05:00Z |       6 |       4 |     6 |     6,000 | settled",
    ]
    [last] = call("runs", "orders", "--last", "1", "-o", "json").json
    names = "run number interval_start interval_end origin planned_at offsets objects rows bytes state "
    names += "letter_objects letter_bytes replaced_by"
    start, end, planned = "2026-11-20T05:00:00Z", "2026-11-20T06:00:00Z", "2026-11-20T06:05:00Z"
    assert " ".join(last) == names
    assert [*last.values()] == [
        "20261120T050000Z",
        4,
        start,
        end,
        "scheduled",
        planned,
        0,
        0,
        0,
        0,
        "written",
        0,
        0,
        None,
    ]


def test_show(call: Call, context: Context) -> None:
    run(context, 2)
    assert call("show", "orders", "last").lines == [
        "orders: run 20261120T020000Z, scheduled, interval [2026-11-20 02:00:00, 2026-11-20 03:00:00) UTC",
        "settled; planned at 2026-11-20T03:05:00Z, committed at 2026-11-20T03:06:00Z",
        "topic  | partition | ranges | offsets | group before | group after",
        "=======+===========+========+=========+==============+============",
        "orders |         0 | [0, 3) |       3 |            0 |           3",
        "orders |         1 | [0, 3) |       3 |            0 |           3",
        "",
        "Account",
        "topic  | partition | archived | filtered | dead-lettered | absent | lost | offsets",
        "=======+===========+==========+==========+===============+========+======+========",
        "orders |         0 |        3 |        0 |             0 |      0 |    0 |       3",
        "orders |         1 |        3 |        0 |             0 |      0 |    0 |       3",
        "all    |         - |        6 |        0 |             0 |      0 |    0 |       6",
        "",
        "Objects: 4 with 6 rows",
        "object                | rows | bytes | first offset | last offset | checksum",
        "======================+======+=======+==============+=============+==========",
        "orders/o+0+0.jsonl.gz |    2 | 2,000 |            0 |           1 | md5of00-1",
        "orders/o+0+2.jsonl.gz |    1 | 1,000 |            2 |           2 | md5of02-1",
        "orders/o+1+0.jsonl.gz |    2 | 2,000 |            0 |           1 | md5of10-1",
        "orders/o+1+2.jsonl.gz |    1 | 1,000 |            2 |           2 | md5of12-1",
    ]
    for name in "20261120T020000Z", "2026-11-20T02:00:00Z":
        document = call("show", "orders", name, "-o", "json").json
        assert (document["archive"], document["run"], document["state"]) == ("orders", "20261120T020000Z", "settled")
        assert document["store"].startswith("memory://")
        for name in "plan", "manifest", "commit":
            stored = getattr(context.ledger, name)("20261120T020000Z")
            assert document[name] == json.loads(stored.to_json())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["show", "orders", "20261120T090000Z"],
            "Archive orders has no run 20261120T090000Z. Its last runs: 20261120T02",
        ),
        (["show", "orders", "yesterday"], "RUN: expected a time like 2026-11-21T05:00:00Z, found 'yesterday'"),
        (
            ["show", "orders", "0001-01-01T00:00:00+14:00"],
            "RUN: expected a time like 2026-11-21T05:00:00Z, found '0001-",
        ),
        (["show", "nobody", "last"], "No archive 'nobody' in "),
    ],
)
def test_what_is_not_there(call: Call, context: Context, words: list[str], message: str) -> None:
    run(context, 2)
    shown = call(*words, code=1)
    assert shown.out == ""
    assert shown.err.startswith(message)
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize("words", [["plan", "orders"], ["runs", "orders"], ["show", "orders", "last"]])
def test_a_wrong_yaml_is_named_by_every_command(call: Call, orders: Path, words: list[str]) -> None:
    orders.write_text(orders.read_text() + "retries: many\n")
    shown = call(*words, code=1)
    assert shown.err.endswith(f"\n{orders}: `retries`: expected a whole number; found 'many'\n")


def test_a_wrong_format_is_named_with_its_file(call: Call, context: Context, orders: Path) -> None:
    orders.write_text(orders.read_text().replace("store: {", "store: {format: parqet, "))
    assert call("plan", "orders", code=1).err.startswith(f"{orders}: store.format: expected ")
    doctor = call("doctor", "orders", "-o", "json", code=1).json[0]["checks"]
    assert [c["found"].startswith(f"{orders}: ") for c in doctor if c["name"] == "format"] == [True]
    [problem] = call("validate", "-o", "json", code=1).json
    assert problem["problems"][0].startswith("store.format: expected ")


def test_what_others_print_is_not_the_result(call: Call, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Brokers, "cluster_id", lambda _: print("noise") or "a-cluster")
    shown = call("plan", "orders", "-o", "yaml")
    assert yaml.safe_load(shown.out)["archive"] == "orders"
    assert shown.err == "noise\n"


def test_only_errors_of_ours_are_short(call: Call, context: Context, brokers: Brokers) -> None:
    brokers.failure = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        call("status", "orders")

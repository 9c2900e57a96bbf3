"""`airflow archive replay-dead-letters` against a metadata database of its own; the test replays in the DAG's place."""

from typing import Any

import pytest

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.params import selected_letters
from kafka_archiver.orchestration.dags import tasks
from kafka_archiver.orchestration.metadata import start
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.dags.conftest import Call, Session, confs, pause
from tests.support.lake import Lake, hour

pytestmark = pytest.mark.dags
P0 = TopicPartition("orders", 0)
RUN = hour(2).id
TEXT = "a line that is not JSON"


@pytest.fixture
def lake(context: Context) -> Lake:
    """A settled run of the archive in the YAML, with two dead letters by earlier settings, one of them for good."""
    odd = {(P0, 1): {"value": TEXT.encode()}, (P0, 2): {"value": b"two\nlines"}}
    lake = Lake(context.store, {P0: Range(0, 3)}, odd=odd, policies={"bad_record": "dead_letter"}, name="orders")
    yaml = lake.archive
    source = yaml.source.model_copy(update={"value": yaml.source.value.model_copy(update={"decode": "json"})})
    lake.configure(yaml.model_copy(update={"source": source}))
    lake.run(2)
    lake.configure(yaml)
    return lake


@pytest.mark.parametrize(
    ("words", "conf"),
    [
        ((RUN,), {"runs": [RUN]}),
        (("2026-11-20T02:00:00Z",), {"runs": [RUN]}),
        (("--all",), {"all": True}),
        (
            ("--hours", "2026-11-20T02:00:00Z", "2026-11-20T05:30:00Z"),
            {"hours": ["2026-11-20T02:00:00Z", "2026-11-20T05:30:00Z"]},
        ),
    ],
)
def test_it_starts_a_run_of_the_dag_which_does_as_told(
    call: Call,
    lake: Lake,
    session: Session,
    ends: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    conf: dict[str, Any],
) -> None:
    follow = start.run_to_its_end

    def carried_out(name: str, parameters: dict[str, Any], say: Any) -> str:
        monkeypatch.setattr(tasks, "open_archive", lambda _: lake.context)
        lake.finish(tasks._replay_letters(lake.archive, parameters["dead_letters"]))
        return follow(name, parameters, say)

    monkeypatch.setattr(start, "run_to_its_end", carried_out)
    shown = call("replay-dead-letters", "orders", *words, "--yes", "-o", "json")
    assert confs(session) == [{"dead_letters": conf}]
    assert "Replaying 2 dead letters of 1 run." in shown.err
    run_parameters = {
        "run": RUN,
        "letters": 2,
        "archived": 1,
        "filtered": 0,
        "rejected": 1,
        "reasons": [],
        "revision": f"{RUN}+r1",
    }
    assert shown.json == {"archive": "orders", "replayed": True, "runs": [run_parameters]}
    assert "Dead letters: 1 with 1 rows" in call("show", "orders", f"{RUN}+r1").out
    assert call("audit", "orders", "--deep", "-o", "json").json[0]["verdict"] == "clean"


def test_a_dry_run_says_what_would_become_of_them_and_changes_nothing(call: Call, lake: Lake, session: Session) -> None:
    before = {stat.key: stat.etag for stat in lake.store.list("")}
    # That nobody would carry out its run is no matter then.
    pause(session)
    [forecast] = call("replay-dead-letters", "orders", "--all", "--dry-run", "-o", "json").json["runs"]
    [reason] = forecast.pop("reasons")
    assert reason.startswith("the value contains a newline")
    assert forecast == {"run": RUN, "letters": 2, "archived": 1, "filtered": 0, "rejected": 1, "revision": None}
    assert {stat.key: stat.etag for stat in lake.store.list("")} == before
    assert "airflow dags unpause archive_orders" in call("replay-dead-letters", "orders", "--all", code=1).err
    assert confs(session) == []


def test_a_failed_run_fails_the_command(call: Call, lake: Lake, session: Session, ends: dict[str, str]) -> None:
    ends["archive"] = "failed"
    assert "archive_orders has ended: failed" in call("replay-dead-letters", "orders", "--all", code=1).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give either runs, or --hours, or --all."),
        ((RUN, "--all"), "Give either runs, or --hours, or --all."),
        (("20261120T030000Z",), f"Archive orders has no run 20261120T030000Z. Its last runs: {RUN}."),
    ],
)
def test_what_cannot_be_replayed(
    call: Call, lake: Lake, session: Session, words: tuple[str, ...], message: str
) -> None:
    assert call("replay-dead-letters", "orders", *words, code=1).err.startswith(message)
    assert confs(session) == []


def test_there_is_nothing_to_replay(call: Call, context: Context, session: Session) -> None:
    Lake(context.store, {P0: Range(0, 3)}, name="orders").run(2)
    assert "Dead letters of orders: there are none" in call("replay-dead-letters", "orders", "--all").out


@pytest.mark.parametrize(
    "wrong",
    [
        {"run": RUN},
        {"runs": []},
        {"runs": ["last"]},
        {"hours": ["5", "x"]},
        {"all": False},
        {"all": True, "runs": [RUN]},
    ],
)
def test_a_run_of_the_dag_that_is_told_something_else_says_so(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="in the run's `dead_letters`: expected"):
        selected_letters(wrong)

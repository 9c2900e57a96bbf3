"""`airflow archive fill` against a metadata database of its own; the test fills in the DAG's place."""

import pytest

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.orchestration.dag_run.params import fill_start, takes_new
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work import plan as planning
from tests.dags.conftest import Call, Session, confs, pause
from tests.support.lake import hour

pytestmark = pytest.mark.dags
P0 = TopicPartition("orders", 0)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[dict[TopicPartition, int]]:
    """Return what is left out, before each run and at the end."""
    remaining = [{P0: 7}, {P0: 3}, {}]
    monkeypatch.setattr(planning, "count_left_out", lambda _, since: remaining.pop(0))
    return remaining


@pytest.mark.usefixtures("context", "left")
def test_it_counts_and_starts_runs_until_nothing_is_left(call: Call, session: Session, ends: dict[str, str]) -> None:
    shown = call("fill", "orders", "--from", "2026-11-20T02:00:00Z", "--yes", "-o", "json")
    assert confs(session) == [{"fill": {"from": "2026-11-20T02:00:00Z"}}] * 2
    assert "7 offsets to go." in shown.err
    assert shown.json == {
        "archive": "orders",
        "filled": True,
        "partitions": [{"partition": "orders[0]", "offsets": 7, "left": 0}],
    }


@pytest.mark.usefixtures("context", "left")
def test_a_dry_run_only_counts(call: Call, session: Session) -> None:
    pause(session)
    shown = call("fill", "orders", "--dry-run", "-o", "json").json
    assert shown == {
        "archive": "orders",
        "filled": False,
        "partitions": [{"partition": "orders[0]", "offsets": 7, "left": 7}],
    }
    assert confs(session) == []


@pytest.mark.usefixtures("context", "left")
def test_a_failed_run_or_a_paused_dag_fails_the_command(call: Call, session: Session, ends: dict[str, str]) -> None:
    ends["archive"] = "failed"
    assert "archive_orders has ended: failed" in call("fill", "orders", "--yes", code=1).err
    pause(session)
    assert "airflow dags unpause archive_orders" in call("fill", "orders", "--yes", code=1).err


@pytest.mark.usefixtures("context")
def test_runs_that_bring_nothing_end_it(
    call: Call, session: Session, ends: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "count_left_out", lambda _, since: {P0: 7})
    shown = call("fill", "orders", "--yes", "-o", "json")
    assert len(confs(session)) == 1
    assert shown.json["partitions"] == [{"partition": "orders[0]", "offsets": 7, "left": 7}]


def test_the_parameter_is_checked_and_such_a_run_archives_nothing_new() -> None:
    assert fill_start({"all": True}) is None
    assert fill_start({"from": "2026-11-20T02:00:00Z"}) == hour_start(to_hour(hour(2).start))
    for wrong in ({}, {"all": False}, {"from": "x"}, {"all": True, "from": "2026-11-20T02:00:00Z"}):
        with pytest.raises(ConfigError, match="in the run's `fill`: expected"):
            fill_start(wrong)
    assert not takes_new({"fill": {"all": True}})
    assert not takes_new({"fill.all": True})

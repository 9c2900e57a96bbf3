"""The watchdog: what no run of an archive can tell, told once, and once that it is over."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config.archives import read_archives
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.orchestration.alerts import reporting
from kafka_archiver.orchestration.alerts.message import Message
from kafka_archiver.orchestration.alerts.reporting import Incident
from kafka_archiver.orchestration.dags import watchdog as dag_module
from kafka_archiver.orchestration.dags import watchdog_dag, watchdog_looks
from kafka_archiver.orchestration.dags.watchdog_looks import FOLDER, Memory, Watchdog
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.store import open_store
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import load
from tests.support.lake import Lake
from tests.support.runs import P0

pytestmark = pytest.mark.dags
# Half an hour after the last closed hour of the archive below.
NOW = datetime(2026, 11, 20, 3, 30, tzinfo=UTC)
ALERTS = "alerts: {on_failure: [ops]}\n"


class World:
    """A watchdog whose Airflow, clock and receivers the test controls."""

    def __init__(self) -> None:
        self.paused: dict[str, bool | None] = {}
        self.memory = Memory()
        self.open: dict[str, dict[str, Incident]] = {}
        self.sent: list[tuple[str, str, str, tuple[str, ...]]] = []
        self.messages: list[Message] = []
        self.up = True

    def is_paused(self, dag: str) -> bool | None:
        return self.paused.get(dag, False)

    def read(self, archive: str) -> dict[str, Incident]:
        return dict(self.open.get(archive, {}))

    def write(self, archive: str, incidents: Mapping[str, Incident]) -> None:
        self.open[archive] = dict(incidents)

    def send(self, receivers: Any, key: str, message: Message, seconds: float) -> bool:
        if self.up and receivers:
            self.sent.append((message.archive, message.kind, message.state, tuple(receivers)))
            self.messages.append(message)
        return self.up

    def look(self, after: timedelta = timedelta(), fails: bool = False) -> list[tuple[str, str]]:
        """Return the alerts of one look, as kind and state."""
        before = len(self.sent)
        failures = Watchdog(self.is_paused, self.memory, "http://airflow/log", NOW + after, self).look(
            read_archives(config_folder())
        )
        assert bool(failures) == fails, failures
        return [(kind, state) for _, kind, state, _ in self.sent[before:]]


@pytest.fixture
def lake(orders: Path, local_connections: None, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The archive orders, whose run has closed three hours and was audited, and its brokers."""
    orders.write_text(orders.read_text() + ALERTS)
    lake = Lake(open_store(yaml.safe_load(orders.read_text())["store"]["url"], {}), {P0: Range(0, 3)}, name="orders")
    lake.run(2)
    audits(lake)
    monkeypatch.setattr("kafka_archiver.context.archive_context.connect", lake.brokers)
    return lake


def audits(lake: Lake, deep: bool = False) -> None:
    publish(lake.store, audit(lake.archive, lake.store, NOW, deep, keyring=lake.ledger.keyring))


@pytest.fixture
def world(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> World:
    """The watchdog of it."""
    world = World()
    monkeypatch.setattr(reporting, "send_all", world.send)
    return world


def test_a_healthy_archive_is_no_news(world: World) -> None:
    assert world.look() == []
    assert world.look(timedelta(minutes=5)) == []


class TestPaused:
    def test_it_is_told_when_more_waits_than_at_first_and_when_it_runs_again(self, world: World, lake: Lake) -> None:
        world.paused["archive_orders"] = True
        assert world.look() == []
        lake.logs[P0] = Range(0, 7)
        assert world.look() == [("paused", "begins")]
        assert world.look() == []
        message = world.messages[-1]
        assert message.cause == (
            "DAG archive_orders is paused, and 4 offsets wait; the last closed hour ended 30 minutes ago"
        )
        assert tuple(map(str, message.do)) == ("airflow dags unpause archive_orders",)
        world.paused["archive_orders"] = False
        assert world.look() == [("paused", "over")]

    def test_it_is_told_when_it_is_late_whatever_the_brokers_say(self, world: World, lake: Lake) -> None:
        world.paused["archive_orders"] = True
        lake.brokers.failure = TransientError("no broker answers")
        assert world.look(timedelta(hours=2)) == []
        assert world.look(timedelta(hours=4)) == [("paused", "begins")]
        assert "how many offsets wait is unknown" in world.messages[-1].cause

    def test_brokers_that_do_not_answer_once_end_no_incident_and_hide_no_growth(
        self, world: World, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        silent = TransientError("no broker answers")
        world.paused["archive_orders"] = True
        assert world.look() == []
        lake.brokers.failure = silent
        assert world.look() == []
        lake.brokers.failure, lake.logs[P0] = None, Range(0, 7)
        assert world.look() == [("paused", "begins")]
        lake.brokers.failure = silent
        assert world.look() == []
        lake.brokers.failure = None
        with monkeypatch.context() as store_is_down:
            store_is_down.setattr(watchdog_looks, "open_ledger", Mock(side_effect=silent))
            assert world.look() == []
        assert world.look() == []
        world.paused["archive_orders"] = False
        assert world.look() == [("paused", "over")]

    def test_nothing_is_told_while_nothing_waits_or_of_a_new_archive(
        self, world: World, lake: Lake, orders: Path
    ) -> None:
        (orders.parent / "new.yaml").write_text(
            orders.read_text().replace("archive: orders", "archive: new").replace("/lake", "/new")
        )
        world.paused |= {"archive_orders": True, "archive_new": True}
        assert world.look(timedelta(days=1)) == []
        assert world.look(timedelta(days=2)) == []


class TestLate:
    def test_it_is_told_when_no_run_has_finished_for_two_intervals_and_an_hour(self, world: World) -> None:
        assert world.look(timedelta(hours=2, minutes=29)) == []
        assert world.look(timedelta(hours=2, minutes=31)) == [("late_hour", "begins")]
        assert world.look(timedelta(hours=3)) == []
        assert "Hours are closed until 2026-11-20T03:00:00Z, 3 h 1 min ago; health.max_age is 3 h" in (
            world.messages[-1].text
        )

    def test_the_limit_of_the_yaml_counts_and_a_run_ends_it(self, world: World, orders: Path, lake: Lake) -> None:
        orders.write_text(orders.read_text().replace(ALERTS, "alerts: {on_failure: [ops], max_age: 2h}\n"))
        assert world.look(timedelta(minutes=91)) == [("late_hour", "begins")]
        assert "alerts.max_age is 2 h" in world.messages[-1].text
        lake.logs[P0] = Range(0, 4)
        lake.run(3)
        assert world.look(timedelta(minutes=92)) == [("late_hour", "over")]

    def test_an_archive_whose_first_run_never_ends_counts_from_the_first_look(self, world: World, orders: Path) -> None:
        (orders.parent / "new.yaml").write_text(
            orders.read_text().replace("archive: orders", "archive: new").replace("/lake", "/new")
        )
        world.look()
        before = len(world.sent)
        world.look(timedelta(hours=4))
        assert ("new", "late_hour", "begins", ("ops",)) in world.sent[before:]

    def test_one_that_is_run_by_hand_is_never_late(self, world: World, orders: Path) -> None:
        orders.write_text(orders.read_text() + "schedule: null\n")
        assert world.look(timedelta(days=30)) == []


class TestAudit:
    def test_it_is_told_when_audits_do_not_run(self, world: World, orders: Path) -> None:
        orders.write_text(orders.read_text() + "health: {max_age: 9d}\n")
        world.paused["audit_orders"] = True
        assert world.look(timedelta(days=2)) == []
        assert world.look(timedelta(days=4)) == [("unaudited", "begins")]
        assert "DAG audit_orders is paused" in world.messages[-1].cause
        assert str(world.messages[-1].do[0]) == "airflow dags unpause audit_orders"

    def test_and_when_there_was_never_one(self, world: World, orders: Path, lake: Lake) -> None:
        orders.write_text(orders.read_text() + "health: {max_age: 9d}\n")
        lake.store.delete("_ledger/orders/audit.json")
        assert world.look(timedelta(days=4)) == [("unaudited", "begins")]
        assert "there was no audit yet" in world.messages[-1].cause

    @pytest.mark.parametrize("off", ["audit: {schedule: null}", "audit: {schedule: '0 5 * * 0'}"])
    def test_not_when_nobody_expects_them_yet(self, world: World, orders: Path, off: str) -> None:
        orders.write_text(orders.read_text() + f"health: {{max_age: 9d}}\n{off}\n")
        assert world.look(timedelta(days=4)) == []

    def test_damage_of_which_nobody_was_told_is_told_and_its_end(self, world: World, lake: Lake) -> None:
        key = next(stat.key for stat in lake.store.list("orders/"))
        content = lake.store.get(key) or b""
        lake.store.delete(key)

        audits(lake)
        assert world.look() == [("audit", "begins")]
        assert "1 object is missing: orders/" in world.messages[-1].cause
        assert world.look() == []
        lake.store.create(key, content)
        # Another etag, and the same bytes: a deep audit is content.
        audits(lake, deep=True)
        assert world.look() == [("audit", "over")]

    def test_damage_that_the_audit_has_told_is_not_told_again(self, world: World, lake: Lake) -> None:
        lake.store.delete(next(stat.key for stat in lake.store.list("orders/")))
        audits(lake)
        world.open["orders"] = {"audit": Incident("another", "2026-11-20T03:20:00Z", "")}
        assert world.look() == []


class TestFiles:
    def test_a_wrong_file_is_told_to_those_whom_the_archive_told_and_the_others_go_on(
        self, world: World, orders: Path
    ) -> None:
        right = orders.read_text()
        (orders.parent / "payments.yaml").write_text(right.replace("orders", "payments"))
        world.look()
        orders.write_text(right + "sink: 1\n")
        assert world.look() == [("wrong_file", "begins")]
        assert world.sent[-1] == ("orders", "wrong_file", "begins", ("ops",))
        assert "so nothing is archived: orders.yaml: 'sink' is not a key of an archive" in world.messages[-1].title
        assert world.look() == []
        orders.write_text(right + "sunk: 1\n")
        assert world.look() == [("wrong_file", "changes")]
        orders.write_text(right)
        assert world.look() == [("wrong_file", "over")]

    def test_one_of_an_unknown_archive_is_told_to_the_default_receivers(
        self, world: World, orders: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ARCHIVER_WATCHDOG_ALERTS", "chat, pager")
        new = orders.parent / "new.yaml"
        new.write_text("archive: [\n")
        assert world.look() == [("wrong_file", "begins")]
        assert world.sent[-1] == ("new", "wrong_file", "begins", ("chat", "pager"))
        new.unlink()
        assert world.look() == [("wrong_file", "over")]

    def test_a_copy_that_kept_the_name_is_told(
        self, world: World, orders: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ARCHIVER_WATCHDOG_ALERTS", "chat")
        (orders.parent / "a copy.yaml").write_text(orders.read_text())
        assert world.look() == [("wrong_file", "begins")]
        assert world.sent[-1][0] == "a_copy.yaml"
        (orders.parent / "a copy.yaml").unlink()
        assert world.look() == [("wrong_file", "over")]

    def test_one_of_which_airflow_cannot_make_a_dag_is_told(self, world: World, orders: Path) -> None:
        text = orders.read_text()
        orders.write_text(text.replace(ALERTS, "alerts: {on_failure: [ops], max_age: 61m}\nschedule: '0 5 * * *'\n"))
        assert ("wrong_file", "begins") in world.look()
        assert "expected more than the schedule's longest interval" in world.messages[0].cause

    def test_a_deleted_file_is_told_until_it_is_back_or_its_dag_is_deleted(self, world: World, orders: Path) -> None:
        text = orders.read_text()
        world.look()
        orders.unlink()
        assert world.look() == [("gone", "begins")]
        assert world.sent[-1] == ("orders", "gone", "begins", ("ops",))
        assert tuple(map(str, world.messages[-1].do)) == (
            f"put {orders} back",
            "if the archive has ended (what is stored stays): airflow dags delete --yes archive_orders && "
            "airflow dags delete --yes audit_orders",
        )
        assert world.look() == []
        orders.write_text(text)
        assert world.look() == [("gone", "over")]
        orders.unlink()
        assert world.look() == [("gone", "begins")]
        world.paused["archive_orders"] = None
        assert world.look() == []
        assert (world.memory.archives, world.open["orders"]) == ({}, {})

    def test_a_missing_folder_is_one_alert_and_no_archive_is_gone(self, world: World, orders: Path) -> None:
        world.look()
        orders.parent.rename(orders.parent.with_name("away"))
        assert world.look() == [("wrong_file", "begins")]
        assert world.sent[-1] == (FOLDER, "wrong_file", "begins", ("ops",))


def test_what_no_receiver_took_is_told_by_the_next_look(world: World, orders: Path) -> None:
    world.look()
    orders.unlink()
    world.up = False
    assert world.look() == []
    world.up = True
    assert world.look() == [("gone", "begins")]
    assert world.look() == []


def test_one_archive_that_cannot_be_looked_at_hides_no_other(
    world: World, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (orders.parent / "broken.yaml").write_text(
        orders.read_text().replace("archive: orders", "archive: broken").replace("/lake", "/broken")
    )

    def is_paused(dag: str) -> bool:
        if dag == "archive_broken":
            raise TransientError("no answer")
        return False

    monkeypatch.setattr(world, "is_paused", is_paused)
    assert world.look(timedelta(hours=4), fails=True) == [("late_hour", "begins")]
    assert world.sent[-1][0] == "orders"


def test_what_it_remembers_is_a_variable_of_airflow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}
    variable = SimpleNamespace(
        get=lambda key, **_: kept.get(key), set=lambda key, value, **_: kept.__setitem__(key, value)
    )
    monkeypatch.setattr("kafka_archiver.orchestration.dags.watchdog_looks.Variable", variable)
    assert Memory.read() == Memory()
    world.look()
    world.memory.write()
    assert Memory.read() == world.memory
    assert list(Memory.read().archives) == ["orders"]


class TestDag:
    def test_it_is_on_from_its_beginning_and_needs_no_valid_file(self, archives: Path) -> None:
        (archives / "wrong.yaml").write_text("archive: [")
        dag = load().dags["archiver_watchdog"]
        assert (dag.is_paused_upon_creation, dag.catchup, dag.max_active_runs) == (False, False, 1)
        assert dag.timetable.expression == "*/5 * * * *"  # type: ignore[attr-defined]
        assert "`wrong_file`" in (dag.doc_md or "")

    def test_its_task_looks_and_remembers(self, world: World, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Airflow's answers as the task's SDK gives them."""
        kept: dict[str, Any] = {}
        variable = SimpleNamespace(
            get=lambda key, **_: kept.get(key),
            set=lambda key, value, **_: kept.__setitem__(key, value),
            delete=lambda key: kept.pop(key, None),
        )
        for module in ("dags.watchdog_looks", "alerts.reporting"):
            monkeypatch.setattr(f"kafka_archiver.orchestration.{module}.Variable", variable)

        def get_dag(dag: str) -> Any:
            if dag == "archive_orders":
                return SimpleNamespace(is_paused=False)
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": status}))

        ti = SimpleNamespace(get_dag=get_dag, log_url="http://airflow/log")
        monkeypatch.setattr(dag_module, "get_current_context", lambda: {"ti": ti})
        task: Any = watchdog_dag().get_task("watch")
        status: int | None = 404
        task.python_callable()
        assert list(kept["kafka_archiver_watched"]["archives"]) == ["orders"]
        # Of the year 2026 of the test's ledger.
        assert ("orders", "late_hour", "begins", ("ops",)) in world.sent
        status = None
        with pytest.raises(TransientError, match="not looked at: orders: Airflow does not say"):
            task.python_callable()

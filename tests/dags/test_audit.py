"""`airflow archive audit` and the DAG that audits: what they answer, and how they end."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowException

from kafka_archiver.audit.report import in_words
from kafka_archiver.config.archives import read_archives
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, PolicyError, TransientError
from kafka_archiver.orchestration.dags import audit as audit_dags
from kafka_archiver.orchestration.dags.audit import audit_dag
from kafka_archiver.orchestration.folder import config_folder
from kafka_archiver.state.status.facts import DagRun, Facts, Written
from kafka_archiver.store import open_store
from kafka_archiver.values.ranges import Range, TopicPartition
from tests.dags.conftest import MINIMAL, Call, MakeArchive
from tests.support.lake import Lake, hour
from tests.support.runs import lines

pytestmark = pytest.mark.dags
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def lake(orders: Path, local_connections: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lake:
    """The archive orders with one run of three hours, and its brokers."""
    store = open_store(yaml.safe_load(orders.read_text())["store"]["url"], {})
    lake = Lake(store, {P0: Range(0, 3), P1: Range(0, 3)}, name="orders")
    lake.run(2)
    monkeypatch.setattr("kafka_archiver.context.archive_context.connect", lake.brokers)
    return lake


def report_time(lake: Lake) -> str:
    return str(json.loads(lake.store.get("_ledger/orders/audit.json") or b"")["audited_at"])


class TestCommand:
    def test_a_clean_archive(self, call: Call, lake: Lake) -> None:
        lake.logs[P0] = Range(0, 4)
        lake.run(3, until="planned")
        [report] = call("audit", "orders", "--deep", "--live", "-o", "json").json
        assert report.pop("audited_at")
        size = sum(stat.size for stat in lake.store.list("orders/"))
        assert report == {
            "document": "kafka-archiver/audit",
            "version": 1,
            "archive": "orders",
            "store": lake.store.url,
            "deep": True,
            "live": True,
            "verdict": "clean",
            "counts": {"runs": 1, "objects": 6, "bytes": size, "rows": 6, "hours": 3, "lost": 0, "read": 6},
            "mended": None,
            "unfinished": ["20261120T030000Z"],
            "findings": [],
        }
        shown = call("audit")
        assert shown.lines == [
            "orders: clean: nothing to report",
            f"1 run, 6 objects of {size} bytes with 6 rows, 3 hours",
            "Not finished: 20261120T030000Z",
            "(none)",
        ]
        assert lines(shown.err) == [
            "orders: 2 runs; reading what they promise",
            "orders: listing the objects of 1 topic",
            f"orders: the report is {lake.store.url}/_ledger/orders/audit.json",
        ]
        # Later ones take its place.
        assert json.loads(lake.store.get("_ledger/orders/audit.json") or b"")["deep"] is False
        assert f"last audit: clean at {report_time(lake)}; 6 objects of {size} bytes" in call("status", code=None).lines

    def test_who_may_only_read_gets_the_report(self, call: Call, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: Any) -> None:
            raise PermanentError("AccessDenied")

        monkeypatch.setattr(type(lake.store), "create", refused)
        shown = call("audit", "-o", "json")
        assert (shown.json[0]["verdict"], lake.store.get("_ledger/orders/audit.json")) == ("clean", None)
        assert "orders: `status` and the page do not know this report, because it cannot be written: AccessDenied" in (
            shown.err
        )

    def test_a_damaged_one(self, call: Call, lake: Lake) -> None:
        [key, *_] = lake.stored()
        lake.store.delete(key)
        shown = call("audit", "orders", "-o", "json", code=1)
        [report] = shown.json
        [finding] = report["findings"]
        assert (report["verdict"], finding["kind"], finding["where"]) == ("damaged", "object-missing", key)
        assert shown.err.endswith("orders: damaged: 1 error, 0 warnings\n")
        table = call("audit", code=1).out
        assert "object-missing" in table
        assert "what to do" in table

    def test_status_has_the_dead_letters_of_the_last_run_and_what_its_dag_run_finished_before(
        self, call: Call, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later = Lake(
            lake.store,
            {P0: Range(0, 5), P1: Range(0, 3)},
            name="orders",
            policies={"bad_record": "dead_letter"},
            odd={(P0, 4): {"value": b"two\nlines"}},
        )
        later.brokers.group = lake.brokers.group
        later.run(5)
        lines = call("status", code=None).lines
        [(at, last_run)] = [(n, line) for n, line in enumerate(lines) if line.startswith("last run: ")]
        assert last_run.startswith("last run: 1 row in 2 objects of ")
        assert last_run.endswith(", 1 dead letter")
        [dead] = [n for n, line in enumerate(lines) if line.startswith("warning: dead letters: 1 record could")]
        assert lines[dead + 1 : dead + 3] == [
            "  - once their cause is corrected: airflow archive replay-dead-letters orders --all",
            "  - if this is accepted: airflow archive acknowledge orders dead-letters:2",
        ]
        done = DagRun(
            run_id="a", state="success", forward=True, date=later.now, due=later.now, ended=later.now,
            finished=(hour(5).id,), wrote=Written(runs=2, records=50, bytes=1000),
        )  # fmt: skip
        facts = Facts(dag_id="archive_orders", runs=(done,))
        monkeypatch.setattr("kafka_archiver.orchestration.metadata.facts.facts_of", lambda *_: facts)
        lines = call("status", code=None).lines
        assert lines[at + 1] == "with 1 earlier run that its DAG run finished: 50 records, 1,000 bytes"

    def test_losses_are_shown_and_make_no_damage(self, call: Call, lake: Lake) -> None:
        later = Lake(
            lake.store, {P0: Range(5, 8), P1: Range(0, 3)}, name="orders", policies={"lost_offsets": "record_loss"}
        )
        later.brokers.group = lake.brokers.group
        later.run(8)
        assert call("audit").lines[0] == "orders: clean, 2 offsets lost for ever: 0 errors, 1 warning"

    def test_neither_kafka_nor_its_connection_is_needed(
        self, call: Call, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake.brokers.failure = TransientError("no answer from the Kafka brokers")
        monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT")
        call("audit")
        assert "there is no Airflow connection 'kafka_default'" in call("audit", "orders", "--live", code=1).err

    def test_one_archive_that_cannot_be_audited_hides_no_other(self, call: Call, lake: Lake, archives: Path) -> None:
        (archives / "payments.yaml").write_text(MINIMAL.format(name="payments") + "sink: 1\n")
        shown = call("audit", "-o", "json", code=1)
        assert [report["archive"] for report in shown.json] == ["orders"]
        assert "`sink` is not a key" in shown.err


class TestDag:
    def test_its_structure(self, archive: MakeArchive) -> None:
        dag = audit_dag(archive("timezone: Europe/Berlin\nalerts: {on_failure: [ops]}\n"))
        assert dag.dag_id == "audit_orders"
        assert dag.task_ids == ["clean_up", "audit"]
        assert (dag.timetable.expression, str(dag.timetable.timezone)) == ("20 3 * * *", "Europe/Berlin")  # type: ignore[attr-defined]
        assert (dag.catchup, dag.max_active_runs) == (False, 1)
        assert dag.tags == {"archiver", "orders", "audit"}
        assert (dag.doc_md or "").startswith("Tidies an archive")
        assert dag.on_failure_callback
        assert dag.get_task("audit").on_failure_callback

    def test_it_is_on_from_its_beginning_and_its_yaml_may_give_another_schedule_or_none(
        self, archive: MakeArchive
    ) -> None:
        assert audit_dag(archive()).is_paused_upon_creation is False
        schedules = {
            "schedule: null\n": None,
            "audit: {schedule: null}\n": None,
            "audit: {schedule: '0 5 * * 0'}\n": "0 5 * * 0",
            "schedule: null\naudit: {schedule: '0 5 * * 0'}\n": "0 5 * * 0",
        }
        for more, expected in schedules.items():
            assert getattr(audit_dag(archive(more)).timetable, "expression", None) == expected

    def test_an_archive_that_has_not_run_yet_is_clean(
        self, orders: Path, local_connections: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = open_store(yaml.safe_load(orders.read_text())["store"]["url"], {})
        new = Lake(store, {P0: Range(0, 3)}, name="orders")
        monkeypatch.setattr("kafka_archiver.context.archive_context.connect", new.brokers)
        assert self.run(new, monkeypatch, live=True)["audit"]["verdict"] == "clean"

    def test_what_airflow_refuses_stops_nobody_else(self, archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("orders", "payments"):
            (archives / f"{name}.yaml").write_text(MINIMAL.format(name=name))

        def refuse(archive: Any) -> list[str]:
            if archive.archive == "orders":
                raise AirflowException("refused")
            return []

        monkeypatch.setattr(audit_dags, "tags", refuse)
        assert list(audit_dags.audit_dags()) == ["audit_payments"]

    def run(self, lake: Lake, monkeypatch: pytest.MonkeyPatch, **params: bool) -> dict[str, Any]:
        """Run the task. Returns what it pushed, even when it fails."""
        pushed: dict[str, Any] = {}
        ti = type("ti", (), {"xcom_push": staticmethod(pushed.__setitem__)})
        run = type("run", (), {"conf": params})
        context = {"params": {"deep": False, "live": False, **params}, "ti": ti, "dag_run": run}
        monkeypatch.setattr(audit_dags, "get_current_context", lambda: context)
        archives = read_archives(config_folder()).valid
        try:
            audit_dag(archives["orders"]).get_task("audit").python_callable()  # type: ignore[attr-defined]
        except (IntegrityError, PolicyError) as error:
            pushed["error"] = str(error)
        return pushed

    def test_a_clean_archive(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        pushed = self.run(lake, monkeypatch, deep=True, live=True)
        assert list(pushed) == ["audit"]
        assert pushed["audit"]["verdict"] == "clean"
        assert (pushed["audit"]["objects"], pushed["audit"]["read"]) == (6, 6)
        # The report is in the ledger, where it is explained.
        stored = json.loads(lake.store.get("_ledger/orders/audit.json") or b"")
        assert (stored["document"], stored["verdict"], stored["deep"]) == ("kafka-archiver/audit", "clean", True)
        assert self.run(lake, monkeypatch)["audit"]["verdict"] == "clean"

    def test_a_damaged_archive_fails_the_task_with_what_is_wrong(
        self, lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        for key in lake.stored():
            lake.store.delete(key)
        for number in range(6):
            lake.store.put(f"orders/extra{number}", b"x")
        with caplog.at_level(logging.INFO, logger=audit_dags.log.name):
            pushed = self.run(lake, monkeypatch)
        assert pushed["error"].startswith("orders: damaged: 12 errors, 0 warnings. (1) orders/date=2026-11-20/hour=00/")
        assert pushed["error"].endswith(
            "(10) " + in_words(lake.audit().damage[9]) + " … and 2 more: see _ledger/orders/audit.json"
        )
        assert pushed["audit"]["verdict"] == "damaged"
        repair, clean = "airflow archive repair orders", "airflow archive clean orders"
        assert [a["command"] for a in pushed["audit"]["damage"]["actions"]] == [
            repair,
            clean,
            "airflow dags trigger audit_orders",
        ]
        assert pushed["audit"]["stops"] is None
        assert sum("unexplained" in line or "object-missing" in line for line in caplog.messages) == 12

    def test_what_stops_the_next_run_fails_the_task_and_is_no_damage(
        self, lake: Lake, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake.logs[P0] = Range(5, 9)
        pushed = self.run(lake, monkeypatch, live=True)
        assert (pushed["audit"]["verdict"], pushed["audit"]["damage"]) == ("clean", None)
        assert pushed["error"].startswith(
            "orders: clean, but the next run stops: 1 error, 0 warnings. (1) orders[0]: retention-passed: found: "
            "2 offsets of orders[0] are gone: the archive stands at 3, but retention has removed everything before 5; "
            "expected: a log that begins at the archive's position or before. To go on"
        )
        choose = """airflow dags trigger archive_orders --conf '{"policies": {"lost_offsets": "record_loss"}}'"""
        assert [a["command"] for a in pushed["audit"]["stops"]["actions"]] == [choose]
        # No surface calls this damage.
        [status] = call("status", "orders", "-o", "json", code=1).json
        assert status["audit"]["verdict"] == "clean"
        assert "damaged" not in {trouble["name"] for trouble in status["troubles"]}
        assert "the next run stops" in call("audit", "--live", code=1).err

    def test_an_archive_that_cannot_be_asked(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AIRFLOW_CONN_AWS_DEFAULT")
        with pytest.raises(ConfigError, match="no Airflow connection 'aws_default'"):
            self.run(lake, monkeypatch)

"""Health and metrics: what load balancers, Prometheus, users and strangers get."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.jobs.job import Job
from airflow.models import DagModel, DagRun
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete, update

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import TransientError
from kafka_archiver.orchestration.page.metrics import _GAUGES, NAMES, exposition
from kafka_archiver.state.overview import Snapshot
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.values.ranges import Range
from tests.dags.conftest import AddConnection, Session
from tests.support.brokers import Brokers
from tests.support.page import Page, teams
from tests.support.prometheus import PROMTOOL
from tests.support.runs import P0, run

pytestmark = pytest.mark.dags

TOKEN = "a-token-of-its-own"


@pytest.fixture
def page(context: Context, session: Session, monkeypatch: pytest.MonkeyPatch) -> Page:
    """The archive orders with one settled run and nothing that waits, in an Airflow without anything to report."""
    monkeypatch.setattr(
        "kafka_archiver.orchestration.page.archives.facts_of", lambda archive, _: Facts(dag_id="archive_orders")
    )
    run(context, 2)
    return Page()


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ARCHIVER_METRICS_TOKEN", TOKEN)
    return TOKEN


@pytest.fixture
def broken(brokers: Brokers, page: Page) -> None:
    brokers.failure = TransientError("no broker answers")


def test_a_stranger_gets_one_word_and_nothing_else(page: Page, brokers: Brokers) -> None:
    answer = page.stranger().get("/archiver/health")
    assert (answer.status_code, answer.text) == (200, "healthy")
    assert page.stranger().head("/archiver/health").status_code == 200
    brokers.failure = TransientError("no broker answers at broker:9092")
    page.refresh("orders")
    answer = page.stranger().get("/archiver/health")
    assert (answer.status_code, answer.text) == (503, "unhealthy")


@pytest.mark.parametrize(("job", "name"), [("SchedulerJob", "scheduler"), ("DagProcessorJob", "dag_processor")])
@pytest.mark.parametrize("is_gone", [True, False])
def test_a_dead_service_of_airflow_is_not_healthy_whatever_the_archives_are(
    page: Page, session: Session, token: str, job: str, name: str, is_gone: bool
) -> None:
    """No DAG can tell it: a prober outside of Airflow asks."""
    old = datetime.now(UTC) - timedelta(minutes=10)
    with session() as opened:
        jobs = Job.job_type == job
        opened.execute(delete(Job).where(jobs) if is_gone else update(Job).where(jobs).values(latest_heartbeat=old))
    answer = page.stranger().get("/archiver/health")
    assert (answer.status_code, answer.text) == (503, "unhealthy")
    health = page.stranger(token).get("/archiver/health").json()
    assert (health["status"], health["airflow"]["status"], health["archives"]["orders"]["status"]) == (
        "unhealthy",
        "unhealthy",
        "healthy",
    )
    [check] = [item for item in health["airflow"]["checks"] if item["verdict"] == "failing"]
    assert check["name"] == name
    assert ("it never was alive" if is_gone else "10 minutes ago") in check["found"]
    metrics = samples(page.stranger(token).get("/archiver/metrics").content)
    other_services = {"scheduler", "dag_processor"} - {name}
    assert metrics[f"kafka_archiver_{name}_alive"] == {(): 0}
    assert [metrics[f"kafka_archiver_{other}_alive"] for other in other_services] == [{(): 1}]


def test_a_watchdog_that_no_longer_looks_is_not_healthy_and_a_missing_one_is_a_warning(
    page: Page, session: Session, token: str
) -> None:
    def check() -> tuple[int, str, str]:
        answer = page.stranger(token).get("/archiver/health")
        [watchdog] = [check for check in answer.json()["airflow"]["checks"] if check["name"] == "watchdog"]
        return answer.status_code, watchdog["verdict"], watchdog["found"]

    assert check() == (
        200,
        "warning",
        "Airflow has no DAG archiver_watchdog: add it to your DAG file, see docs/install/index.md",
    )
    begin = datetime.now(UTC)
    with session() as opened:
        opened.add(DagModel(dag_id="archiver_watchdog", bundle_name="dags-folder", is_paused=False, is_stale=False))
        opened.flush()
    assert check() == (200, "ok", "it has not run yet")
    with session() as opened:
        run = DagRun(dag_id="archiver_watchdog", run_id="a", run_type="scheduled", run_after=begin, state="failed")
        run.end_date = begin
        opened.add(run)
    try:
        assert check()[:2] == (200, "ok")
        with session() as opened:
            opened.execute(update(DagRun).values(run_after=begin - timedelta(minutes=25)))
        status, verdict, message = check()
        assert (status, verdict) == (503, "failing")
        assert "has never succeeded" in message
        with session() as opened:
            opened.execute(update(DagRun).values(state="success", end_date=begin - timedelta(minutes=4)))
        assert check()[:2] == (200, "ok")
        with session() as opened:
            opened.execute(update(DagRun).values(end_date=begin - timedelta(minutes=25)))
        status, verdict, message = check()
        assert (status, verdict) == (503, "failing")
        assert "25 minutes ago: do workers run?" in message
        metrics = samples(page.stranger(token).get("/archiver/metrics").content)
        [moment] = metrics["kafka_archiver_watchdog_timestamp_seconds"].values()
        assert moment == pytest.approx((begin - timedelta(minutes=25)).timestamp())
        with session() as opened:
            opened.execute(update(DagModel).where(DagModel.dag_id == "archiver_watchdog").values(is_paused=True))
        assert check()[:2] == (200, "warning")
    finally:
        with session() as opened:
            opened.execute(delete(DagRun))
            opened.execute(delete(DagModel).where(DagModel.dag_id == "archiver_watchdog"))


def test_before_the_first_look_nothing_is_called_healthy(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_archiver.orchestration.page.health.STRANGERS_PATIENCE", 0)
    answer = page.stranger().get("/archiver/health")
    assert (answer.status_code, answer.text) == (503, "unknown")


def test_a_wrong_yaml_file_is_not_healthy(page: Page, orders: Path, token: str) -> None:
    (orders.parent / "wrong.yaml").write_text("archive: wrong\n")
    assert page.stranger().get("/archiver/health").text == "unhealthy"
    health = page.stranger(token).get("/archiver/health").json()
    assert list(health["archives"]) == ["orders"]
    assert "wrong.yaml: `source` is required" in health["wrong_files"][0]
    # A user who may see the errors of files gets the same answer, another user that of the archives alone.
    admin = page.user("admin").get("/archiver/health")
    assert (admin.status_code, admin.json()["wrong_files"]) == (503, health["wrong_files"])
    nobody = page.user(None).get("/archiver/health")
    assert (nobody.status_code, "wrong_files" in nobody.json()) == (200, False)


def test_the_health_of_one_archive_is_for_those_who_may_know(page: Page, token: str) -> None:
    for name in ("orders", "nothing"):
        assert page.stranger().get(f"/archiver/health/{name}").status_code == 401
        assert page.stranger("a guess").get(f"/archiver/health/{name}").status_code == 401
        assert page.user(None).get(f"/archiver/health/{name}").status_code == 404
    assert page.user("viewer").get("/archiver/health/nothing").status_code == 404
    for client in (page.stranger(token), page.user("viewer")):
        answer = client.get("/archiver/health/orders")
        assert (answer.status_code, answer.json()["status"]) == (200, "healthy")


def test_details_name_each_check_with_its_command(page: Page, token: str, broken: None) -> None:
    answer = page.stranger(token).get("/archiver/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "unhealthy")
    checks = {check["name"]: check for check in answer.json()["archives"]["orders"]["checks"]}
    assert checks["answers"] == {
        "name": "answers",
        "verdict": "failing",
        "found": "no broker answers",
        "do": ["airflow archive doctor orders"],
    }


def test_a_user_gets_only_the_archives_whose_dags_the_user_may_see(
    page: Page, session: Session, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(page.user("viewer").get("/archiver/health").json()["archives"]) == ["orders"]
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    with teams(session, "sales", "billing"):
        assert list(page.user("viewer", "sales").get("/archiver/health").json()["archives"]) == ["orders"]
        assert page.user("viewer", "billing").get("/archiver/health").json()["archives"] == {}
        assert b'archive="orders"' in page.user("viewer", "sales").get("/archiver/metrics").content
        assert b'archive="orders"' not in page.user("viewer", "billing").get("/archiver/metrics").content
        assert list(page.user("admin").get("/archiver/health").json()["archives"]) == ["orders"]
        assert list(page.stranger(token).get("/archiver/health").json()["archives"]) == ["orders"]


def test_metrics_are_only_for_the_token_and_for_users(page: Page, token: str) -> None:
    refused = page.stranger().get("/archiver/metrics")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    for wrong in ("", "a-token", TOKEN.upper(), f"{TOKEN} ä"):
        assert page.stranger(wrong).get("/archiver/metrics").status_code == 401
    assert page.stranger(token).get("/archiver/metrics").status_code == 200
    assert page.user("viewer").get("/archiver/metrics").status_code == 200


def test_without_a_token_set_no_token_is_right(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_METRICS_TOKEN", "")
    for guess in ("", " ", "None"):
        assert page.stranger(guess).get("/archiver/metrics").status_code == 401


def test_the_token_may_be_the_password_of_a_connection(page: Page, connection: AddConnection) -> None:
    connection("archiver_metrics", "generic", password="of the connection")
    assert page.stranger("of the connection").get("/archiver/metrics").status_code == 200
    assert page.stranger("another").get("/archiver/metrics").status_code == 401


def samples(text: bytes) -> dict[str, dict[tuple[str, ...], float]]:
    """The samples by name and labels, read by Prometheus' own parser."""
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text.decode())
    }


def test_metrics_say_what_status_says(page: Page, brokers: Brokers, token: str) -> None:
    brokers.logs[P0] = Range(0, 5)
    page.refresh("orders")
    answer = page.stranger(token).get("/archiver/metrics")
    metrics = samples(answer.content)
    names = ("orders",)
    assert set(metrics) <= NAMES
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert metrics["kafka_archiver_up"] == {names: 1}
    assert metrics["kafka_archiver_healthy"] == {names: 1}
    assert metrics["kafka_archiver_lag_records"] == {names: 2}
    assert metrics["kafka_archiver_topic_lag_records"] == {("orders", "orders"): 2}
    assert metrics["kafka_archiver_last_run_records"] == {names: 6}
    assert metrics["kafka_archiver_last_run_bytes"] == {names: 6000}
    assert metrics["kafka_archiver_last_run_objects"] == {names: 4}
    assert metrics["kafka_archiver_archives"] == {(): 1}
    assert metrics["kafka_archiver_wrong_files"] == {(): 0}


def test_what_is_unknown_has_no_sample(page: Page, token: str, broken: None) -> None:
    metrics = samples(page.stranger(token).get("/archiver/metrics").content)
    assert metrics["kafka_archiver_up"] == {("orders",): 0}
    assert metrics["kafka_archiver_healthy"] == {("orders",): 0}
    assert not metrics["kafka_archiver_lag_records"]
    assert not metrics["kafka_archiver_audit_damaged"]
    assert metrics["kafka_archiver_closed_until_timestamp_seconds"]
    assert metrics["kafka_archiver_lost_offsets"] == {("orders",): 0}


def test_without_the_store_what_the_ledger_has_has_no_sample(
    page: Page, token: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(context.store), "version", lambda *_: _no_store())
    monkeypatch.setattr(type(context.store), "read", lambda *_: _no_store())
    metrics = samples(page.stranger(token).get("/archiver/metrics").content)
    assert metrics["kafka_archiver_up"] == {("orders",): 0}
    for name in ("lost_offsets", "unfinished_runs", "proofs_open"):
        assert not metrics[f"kafka_archiver_{name}"]


def _no_store() -> Any:
    raise TransientError("no store answers")


def test_names_follow_the_convention(page: Page) -> None:
    archive = page.archive_snapshots.archives().valid["orders"]
    snapshot = page.archive_snapshots.snapshots(["orders"], 10)["orders"]
    text = exposition({"orders": archive}, {"orders": snapshot}, archive_time(), 0)
    if PROMTOOL:
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    for gauge in _GAUGES:
        assert gauge.name == gauge.name.lower()
        assert not gauge.name.endswith(("_minutes", "_hours_seconds", "_total", "_ms", "_mb")), gauge.name
        assert gauge.text.endswith("."), gauge.name


def test_the_number_of_series_is_bounded_by_archives_and_topics(page: Page, token: str) -> None:
    lines = page.stranger(token).get("/archiver/metrics").text.splitlines()
    series = [line for line in lines if 'archive="orders"' in line]
    assert len(series) <= len(_GAUGES) + 2 + 1
    assert not any('partition="' in line or 'run="' in line for line in lines)


def test_odd_names_cannot_break_the_format(page: Page) -> None:
    archive = page.archive_snapshots.archives().valid["orders"]
    name = 'a"b\\c\nd'
    snapshot: Any = Snapshot(archive=name, taken_at=archive_time())
    metrics = samples(exposition({name: archive}, {name: snapshot}, archive_time(), None))
    assert metrics["kafka_archiver_up"] == {(name,): 1}


def archive_time() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def test_airflow_loads_the_plugin_and_nothing_heavy_with_it() -> None:
    import sys

    code = (
        "import sys, json\n"
        "import airflow.plugins_manager, airflow.configuration\n"
        "before = set(sys.modules)\n"
        "import kafka_archiver.orchestration.plugin\n"
        "print(json.dumps(sorted({n.partition('.')[0] for n in set(sys.modules) - before})))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(shown.stdout.splitlines()[-1]))
    assert not loaded & {"fastapi", "pyspark", "confluent_kafka", "boto3", "jinja2", "prometheus_client"}


def test_the_application_is_made_once_at_the_first_request(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    from kafka_archiver.orchestration.page import app
    from kafka_archiver.orchestration.plugin import LazyApp

    applications: list[Any] = []

    def make() -> Any:
        applications.append(real(page.archive_snapshots))
        return applications[-1]

    real = app.make_app
    monkeypatch.setattr(app, "make_app", make)
    server = FastAPI()
    server.mount("/archiver", LazyApp())
    assert applications == []
    answers = {TestClient(server).get("/archiver/health").text for _ in range(3)}
    assert (answers, len(applications)) == ({"healthy"}, 1)

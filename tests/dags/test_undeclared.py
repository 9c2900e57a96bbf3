"""An archive whose YAML file is wrong or gone stays, with its last state and the error; the others go on."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_archiver.config.archives import WrongFileError, missing, read_archives
from kafka_archiver.context.archive_context import Context
from kafka_archiver.orchestration.metadata.undeclared import undeclared_archives
from tests.dags.conftest import MINIMAL, Call
from tests.support.brokers import Brokers
from tests.support.metadata import database_with
from tests.support.page import Page
from tests.support.runs import run

pytestmark = pytest.mark.dags

DAGS = """# Airflow parses only files with both words: airflow, dag
from pathlib import Path
from kafka_archiver.orchestration.dags import archive_dags
found, _ = archive_dags()
globals().update(found)
"""
WRONG = "orders.yaml: `sink` is not a key of an archive"


@pytest.fixture
def known(context: Context, orders: Path, tmp_path: Path) -> Iterator[Path]:
    """Airflow has the archives orders, with a settled run in the ledger, and payments; each has run."""
    (orders.parent / "payments.yaml").write_text(orders.read_text().replace("orders", "payments"))
    run(context, 2)
    (folder := tmp_path / "airflow").mkdir()
    with database_with(folder, DAGS):
        add_runs()
        yield orders.parent


def add_runs() -> None:
    from datetime import UTC, datetime

    from airflow.jobs.job import Job
    from airflow.models import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(Job(job_type="SchedulerJob", state="running", latest_heartbeat=datetime.now(UTC)))
        for name in ("orders", "payments"):
            session.add(
                DagRun(
                    dag_id=f"archive_{name}",
                    run_id="a",
                    run_type="manual",
                    run_after=datetime.now(UTC),
                    state="success",
                )
            )


def break_orders(folder: Path) -> None:
    file = folder / "orders.yaml"
    file.write_text(file.read_text() + "sink: 1\n")


def stale(*names: str) -> None:
    """Mark DAGs as the DAG processor does if they are in no file any more."""
    from airflow.models import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        ids = [f"archive_{name}" for name in names]
        session.execute(update(DagModel).where(DagModel.dag_id.in_(ids)).values(is_stale=True))


def test_an_error_names_the_archive_of_its_file_whatever_is_wrong(archives: Path) -> None:
    texts = {
        "by key": "archive: orders\nsink: 1\n",
        "quoted": "sink: 1\narchive: 'with.dots-and_more' # a name\n",
        "no yaml": "archive: broken\n  [",
        "by file": "source: {topics: [x]}\n",
    }
    for name, text in texts.items():
        (archives / f"{name}.yaml").write_text(text)
    errors = read_archives(archives).errors
    assert all(isinstance(error, WrongFileError) for error in errors)
    assert set(missing(read_archives(archives))) == {"orders", "with.dots-and_more", "broken", "by file"}


def test_a_copy_that_kept_the_name_makes_nothing_missing(archives: Path) -> None:
    for file in ("orders", "copy"):
        (archives / f"{file}.yaml").write_text(MINIMAL.format(name="orders"))
    assert missing(read_archives(archives)) == {}
    (archives / "orders.yaml").rename(archives / "other.yaml")
    assert list(missing(read_archives(archives))) == ["orders"]


def test_a_wrong_file_and_a_deleted_one(known: Path) -> None:
    assert undeclared_archives(read_archives(known)) == {}
    break_orders(known)
    (known / "payments.yaml").unlink()
    archives = undeclared_archives(read_archives(known))
    assert [(name, archive.is_gone) for name, archive in archives.items()] == [("orders", False), ("payments", True)]
    assert WRONG in archives["orders"].fault
    assert str(known / "payments.yaml") in archives["payments"].fault
    assert tuple(map(str, archives["payments"].do)) == (
        "airflow dags delete --yes archive_payments",
        "airflow dags delete --yes audit_payments",
    )
    assert archives["orders"].archive.source.topics == ("orders",)


def test_a_deleted_archive_that_never_ran_is_forgotten(known: Path) -> None:
    from airflow.models import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.execute(delete(DagRun))
    (known / "payments.yaml").unlink()
    assert undeclared_archives(read_archives(known)) == {}


def test_list_and_status_have_its_last_state_and_the_error(known: Path, call: Call, quiet: None) -> None:
    (known / "payments.yaml").unlink()
    break_orders(known)
    listed = call("list", "-o", "json", code=1)
    assert [(row["archive"], bool(row["error"])) for row in listed.json] == [("orders", True), ("payments", True)]
    assert WRONG in listed.err
    assert "payments: no file declares it any more" in listed.err
    assert call("list", code=1).out.count("does not run") == 2
    shown = call("status", "orders", code=1)
    assert "orders: its YAML file is wrong, so nothing is archived" in shown.err
    assert "closed until 2026-11-20T03:00:00Z" in shown.out
    assert "failing: file: its YAML file is wrong" in shown.out
    [document] = call("status", "orders", "-o", "json", code=1).json
    assert (document["closed_until"], document["health"][0]["name"]) == ("2026-11-20T03:00:00Z", "file")


def test_the_page_has_its_last_state_and_the_error_and_starts_nothing(
    known: Path, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example")
    page = Page()
    break_orders(known)
    stale("orders")
    client = page.user("admin")
    client.get("/archiver/")
    page.refresh("orders", "payments")
    rows: Any = client.get("/archiver/").text
    assert 'href="/archiver/archives/orders">orders</a>' in rows
    assert '<a class="pill unhealthy" href="/archiver/archives/orders#wrong">unhealthy</a>' in rows
    assert '<span class="cause" title="its YAML file is wrong' in rows
    archive_page = client.get("/archiver/archives/orders").text
    assert "its YAML file is wrong, so nothing is archived" in archive_page
    assert WRONG in archive_page
    assert "2026-11-20 03:00" in archive_page
    # At its line; a value that may be a secret is not shown.
    assert re.search(r"<li>line 4: `sink` is not a key", archive_page)
    for text in (archive_page, client.get("/archiver/").text):
        assert "    4 | sink: …" in text
    [token] = set(re.findall(r'name="csrf" value="([^"]+)"', archive_page))
    same_origin = {"Origin": "http://airflow.example", "Sec-Fetch-Site": "same-origin"}
    answer = client.post("/archiver/archives/orders/do/run", data={"csrf": token}, headers=same_origin)
    assert (answer.status_code, "Archive orders cannot run: its YAML file is wrong" in answer.text) == (409, True)
    health = client.get("/archiver/health").json()
    assert health["archives"]["orders"]["checks"][0]["name"] == "file"
    # It comes back by itself.
    file = known / "orders.yaml"
    file.write_text(file.read_text().replace("sink: 1\n", ""))
    assert "its YAML file is wrong" not in client.get("/archiver/archives/orders").text


def test_a_database_that_does_not_answer_hides_no_valid_archive(
    known: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.exc import OperationalError

    def fail() -> None:
        raise OperationalError("x", {}, Exception("away"))

    monkeypatch.setattr("kafka_archiver.orchestration.metadata.undeclared.create_session", fail)
    break_orders(known)
    assert [row["archive"] for row in call("list", "-o", "json", code=1).json] == ["payments"]

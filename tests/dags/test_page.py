"""The page: what strangers, viewers, operators and other teams see and may do, by Airflow's real auth manager."""

import gzip
import itertools
import json
import re
import sys
import time
from argparse import Namespace
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from airflow.models import Log
from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from fastapi.testclient import TestClient
from sqlalchemy import select

from kafka_archiver.audit.inspection import audit, publish
from kafka_archiver.config import Policies, parse_archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.actions import Action, advise
from kafka_archiver.messages.advice import print_object
from kafka_archiver.messages.errors import ArchiverError, ConfigError, PolicyError, TransientError
from kafka_archiver.model.adopted import Adoption
from kafka_archiver.model.findings import problem
from kafka_archiver.model.object_keys import audit_document
from kafka_archiver.model.reasons import reason_of_holes
from kafka_archiver.model.restore import (
    PartitionReport,
    RestorePlan,
    RestoreReport,
    RestoreSelection,
    RestoreSource,
    TargetTopic,
)
from kafka_archiver.orchestration.cli.acknowledge import acknowledge
from kafka_archiver.orchestration.metadata.facts import facts_of
from kafka_archiver.orchestration.page import details, documents
from kafka_archiver.orchestration.page.access import csrf_token
from kafka_archiver.orchestration.page.actions import choices
from kafka_archiver.orchestration.page.cache import Near
from kafka_archiver.orchestration.page.views import ON_SCREEN
from kafka_archiver.orchestration.plugin import ArchiverPlugin
from kafka_archiver.orchestration.submit.links import document_address
from kafka_archiver.orchestration.submit.operator import progress_keeper
from kafka_archiver.reader.lookup import DeadLetterError
from kafka_archiver.state.coverage import HourDetail
from kafka_archiver.state.coverage.dead_letters import Reason
from kafka_archiver.state.key_preview import PreviewedObject
from kafka_archiver.state.status.facts import DagRun, Facts, TaskFailure, Written
from kafka_archiver.values.intervals import to_hour
from kafka_archiver.values.ranges import Range
from kafka_archiver.work.plan import plan
from kafka_archiver.work.planned_work import PlannedWork
from kafka_archiver.work.restore.gather import gather
from tests.dags.conftest import MakeArchive, Session, confs, pause
from tests.support import plans
from tests.support.brokers import Brokers
from tests.support.page import Page, teams
from tests.support.plans import entry as object_entry
from tests.support.runs import P0, P1, hour, run
from tests.support.waiting import until

pytestmark = pytest.mark.dags

SITE = "http://airflow.example"
OURS = {"Origin": SITE, "Sec-Fetch-Site": "same-origin"}
PAGES = (
    "/",
    "/archives/orders",
    "/archives/orders/hours/2026-11-20T02",
    "/archives/orders/plan",
)
DO = "/archiver/archives/orders/do/"
WIDE = {"accept": "text/html"}


@pytest.fixture
def page(context: Context, session: Session, monkeypatch: pytest.MonkeyPatch) -> Page:
    """The archive orders with one settled run."""
    for module in ("archives", "details", "action_routes"):
        monkeypatch.setattr(
            f"kafka_archiver.orchestration.page.{module}.facts_of", lambda archive, _: Facts(dag_id="archive_orders")
        )
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", SITE)
    run(context, 2)
    return Page()


def known_facts(monkeypatch: pytest.MonkeyPatch, facts: Facts) -> None:
    """Let Airflow's database have these facts of the archive."""
    for module in ("archives", "details"):
        monkeypatch.setattr(f"kafka_archiver.orchestration.page.{module}.facts_of", lambda *_: facts)


def token_of(client: TestClient) -> str:
    field = re.search(r'name="csrf" value="([^"]+)"', client.get("/archiver/archives/orders").text)
    return field[1] if field else ""


def do(client: TestClient, action: str, fields: dict[str, Any] | None = None, **headers: str) -> Any:
    """Send a form of the page, as a browser does."""
    data = {"csrf": token_of(client), **(fields or {})}
    return client.post(DO + action, data=data, headers={**OURS, **headers})


# Who may see.


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_sent_to_the_login_and_sees_nothing(page: Page, path: str) -> None:
    answer = page.stranger().get(f"/archiver{path}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/auth/login?next=")
    assert answer.content == b""


@pytest.mark.parametrize("path", PAGES)
def test_a_viewer_sees_each_page_without_forms(page: Page, path: str) -> None:
    answer = page.user("viewer").get(f"/archiver{path}")
    assert answer.status_code == 200
    assert "orders" in answer.text
    assert 'method="post"' not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_somebody_without_a_role_sees_no_archive(page: Page) -> None:
    client = page.user(None)
    assert "orders" not in client.get("/archiver/").text
    for path in PAGES[1:]:
        assert client.get(f"/archiver{path}").status_code == 404


def test_another_team_neither_sees_nor_acts(page: Page, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    with teams(session, "sales", "billing"):
        of_sales, of_billing = page.user("user", "sales"), page.user("user", "billing")
        assert "/archives/orders" in of_sales.get("/archiver/").text
        assert do(of_sales, "run").status_code == 303
        assert "/archives/orders" not in of_billing.get("/archiver/").text
        for path in PAGES[1:]:
            # The same answer as for an archive that does not exist.
            refused, nothing = (of_billing.get(f"/archiver{p}") for p in (path, path.replace("orders", "nothing")))
            assert (refused.status_code, refused.text) == (nothing.status_code, nothing.text) == (404, refused.text)
        assert do(of_billing, "run", {"csrf": token_of(of_sales)}).status_code == 404
    assert len(confs(session)) == 1


def test_with_several_teams_a_dag_that_airflow_does_not_have_is_of_nobody(
    page: Page, session: Session, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (orders.parent / "new.yaml").write_text(orders.read_text().replace("archive: orders", "archive: new"))
    assert "/archives/new" in page.user("viewer").get("/archiver/").text
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", "True")
    with teams(session, "sales", "billing"):
        assert "/archives/new" not in page.user("viewer", "sales").get("/archiver/").text


@pytest.fixture
def fab(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow has the FAB auth manager, whose roles may have the rights of single DAGs."""
    from airflow.providers.fab.auth_manager.fab_auth_manager import FabAuthManager
    from airflow.providers.fab.auth_manager.models.db import FABDBManager

    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", f"{FabAuthManager.__module__}.{FabAuthManager.__name__}")
    with session() as opened:
        FABDBManager(opened).initdb()


def with_role(page: Page, name: str, rights: Collection[tuple[str, str]]) -> TestClient:
    """The browser of somebody whose only role has these rights."""
    from airflow.api_fastapi.app import get_auth_manager

    manager: Any = get_auth_manager()
    with manager.flask_app.app_context():
        security = manager.security_manager
        role = security.add_role(name)
        for action, resource in rights:
            security.add_permission_to_role(role, security.create_permission(action, resource))
        user = security.add_user(name, name, name, f"{name}@example.com", role, password=name)
        client = page.stranger()
        client.cookies.set("_token", manager.generate_jwt(user))
    return client


def test_a_role_of_the_fab_auth_manager_sees_and_does_what_operating_says(
    fab: None, page: Page, session: Session, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new", "secret"):
        (orders.parent / f"{name}.yaml").write_text(orders.read_text().replace("archive: orders", f"archive: {name}"))
    paused = Facts(dag_id="archive_orders", paused=True)
    known_facts(monkeypatch, paused)
    reads = {("can_read", "DAG:archive_orders"), ("can_read", "DAG:archive_new")}
    edits = {*reads, ("can_edit", "DAG:archive_orders")}
    runs = {*edits, ("can_create", "DAG Run:archive_orders")}
    nobody, reader = with_role(page, "nobody", ()), with_role(page, "reader", reads)
    editor, operator = with_role(page, "editor", edits), with_role(page, "operator", runs)
    orders_page = nobody.get("/archiver/archives/orders")
    assert (orders_page.status_code, "orders" in nobody.get("/archiver/").text) == (404, False)
    for client in (reader, editor, operator):
        assert set(re.findall(r'href="/archiver/archives/(\w+)"', client.get("/archiver/").text)) == {"new", "orders"}
        assert set(client.get("/archiver/health").json()["archives"]) == {"new", "orders"}
        assert "secret" not in client.get("/archiver/metrics").text
        assert client.get("/archiver/archives/secret").status_code == 404
        assert "/do/" not in client.get("/archiver/archives/new").text

    def actions(client: TestClient) -> set[str]:
        return set(
            re.findall(r'action="/archiver/archives/orders/do/([^"]+)"', client.get("/archiver/archives/orders").text)
        )

    # Its audit has a DAG of its own, which none of them may trigger.
    assert (actions(reader), actions(editor)) == (set(), {"unpause"})
    assert actions(operator) == {"run", "backfill", "rebuild", "repair", "dead-letters", "unpause", "acknowledge"}
    assert (
        do(reader, "unpause").status_code == do(editor, "run").status_code == do(operator, "audit").status_code == 403
    )
    token = {"csrf": token_of(operator)}
    answers = [
        operator.post(f"/archiver/archives/{name}/do/run", data=token, headers=OURS) for name in ("new", "secret")
    ]
    assert [answer.status_code for answer in answers] == [403, 404]
    assert confs(session) == []
    assert do(editor, "unpause").status_code == do(operator, "run").status_code == 303
    assert len(confs(session)) == 1


# Who may act.


def test_a_viewer_may_not_act(page: Page, session: Session) -> None:
    client = page.user("viewer")
    token = csrf_token(_Named("some viewer"))  # type: ignore[arg-type]
    answer = client.post(DO + "run", data={"csrf": token}, headers=OURS)
    assert (answer.status_code, answer.json()["detail"]) == (403, "You may not trigger archive_orders")
    assert confs(session) == []


def test_a_stranger_may_not_act(page: Page, session: Session) -> None:
    token = token_of(page.user("user"))
    assert page.stranger().post(DO + "run", data={"csrf": token}, headers=OURS).status_code == 401
    assert confs(session) == []


class _Named:
    """A user as the token knows one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get_id(self) -> str:
        return self._name


def test_an_operator_starts_a_run_which_names_its_user(page: Page, session: Session) -> None:
    answer = do(page.user("user"), "run")
    assert answer.status_code == 303
    [started] = _runs(session)
    assert f"started={started.run_id.replace(':', '%3A').replace('+', '%2B')}" in answer.headers["location"]
    assert (started.run_type, started.triggering_user_name, started.state) == ("manual", "some user", "queued")
    shown = page.user("user").get(answer.headers["location"])
    assert f"Started {started.run_id}" in shown.text.replace("&#43;", "+")


def test_the_action_is_in_airflows_audit_log(page: Page, session: Session) -> None:
    from airflow.models.log import Log
    from sqlalchemy import select

    do(page.user("user"), "rebuild", {"hour": "2026-11-20T02:00", "agreed": "1"})
    with session() as opened:
        [line] = opened.scalars(select(Log).where(Log.event == "archiver_rebuild")).all()
        assert (line.owner, line.dag_id) == ("some user", "archive_orders")


@pytest.mark.parametrize(
    ("action", "fields", "conf"),
    [
        ("run", {}, {}),
        ("rebuild", {"hour": "2026-11-20T02:00", "agreed": "1"}, {"rebuild": {"hour": "2026-11-20T02:00:00Z"}}),
        (
            "rebuild",
            {"hour": "2026-11-20T02", "keep": "1", "fewer": "1", "agreed": "1"},
            {"rebuild": {"hour": "2026-11-20T02:00:00Z", "keep": True, "fewer": True}},
        ),
        ("repair", {"run": ["20261120T020000Z"]}, {"repair": ["20261120T020000Z"]}),
        ("dead-letters", {"first": "", "last": ""}, {"dead_letters": {"all": True}}),
        (
            "dead-letters",
            {"first": "2026-11-20T02:00", "last": "2026-11-20T03:00"},
            {"dead_letters": {"hours": ["2026-11-20T02:00:00Z", "2026-11-20T03:00:00Z"]}},
        ),
    ],
)
def test_each_action_starts_a_run_with_its_parameters(
    page: Page, session: Session, action: str, fields: dict[str, str], conf: dict[str, Any]
) -> None:
    assert do(page.user("user"), action, fields).status_code == 303
    assert [started_with or {} for started_with in confs(session)] == [conf]


@pytest.mark.parametrize(
    ("action", "fields", "message"),
    [
        ("rebuild", {"hour": "yesterday"}, "`hour`: expected an hour since 1970, like 2026-11-21T05:00, found &#39;"),
        ("rebuild", {"hour": "0001-01-01T00:00+05:00"}, "expected an hour since 1970"),
        ("rebuild", {"hour": "1" * 5000}, "found &#39;1111111111111111111111111111111111111111&#39;"),
        ("backfill", {"first": "0001-01-01T00", "last": "0001-01-01T00"}, "expected an hour since 1970"),
        ("backfill", {"first": "9999-12-31T23", "last": "9999-12-31T23"}, "expected an hour since 1970"),
        ("backfill", {"first": "2025-11-20T00", "last": "2026-11-20T00"}, "expected at most 750 intervals at once"),
        ("repair", {}, "no run is chosen"),
        ("repair", {"run": "nonsense"}, "expected names of runs"),
        ("backfill", {"first": "2026-11-20T05", "last": "2026-11-20T02"}, "is after the last"),
        ("run", {"policy.lost_offsets": "forget"}, "`lost_offsets`: expected"),
        ("delete", {}, "expected one of run, backfill, audit"),
        ("audit", {}, "Airflow has no DAG"),
    ],
)
def test_a_wrong_field_starts_nothing_and_says_why(
    page: Page, session: Session, action: str, fields: dict[str, str], message: str
) -> None:
    answer = do(page.user("admin"), action, fields)
    assert answer.status_code == 409
    assert message in answer.text
    assert confs(session) == []


def test_a_database_that_stays_locked_is_said_and_starts_nothing(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.settings import engine

    client = page.user("user")
    monkeypatch.setattr("kafka_archiver.orchestration.metadata.database._WAIT_MS", 100)
    token = token_of(client)
    with engine.connect() as other:  # type: ignore[union-attr]
        other.exec_driver_sql("BEGIN IMMEDIATE")
        for action, hours in (("run", {}), ("backfill", {"first": "2026-11-20T02", "last": "2026-11-20T02"})):
            answer = client.post(DO + action, data={"csrf": token, **hours}, headers=OURS)
            assert (answer.status_code, "database is locked" in answer.text) == (409, True)
        other.rollback()
    assert confs(session) == []
    assert do(client, "run").status_code == 303


def test_a_paused_dag_is_not_started(page: Page, session: Session) -> None:
    pause(session)
    answer = do(page.user("user"), "run")
    assert answer.status_code == 409
    assert "Unpause it first" in answer.text
    assert '<a data-airflow href="/dags/archive_orders">' in answer.text
    assert 'action="/archiver/archives/orders/do/unpause"' in answer.text


def test_who_may_edit_a_paused_dag_has_a_button_that_unpauses_it(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.log import Log
    from sqlalchemy import select

    pause(session)
    facts = Facts(dag_id="archive_orders", paused=True)
    known_facts(monkeypatch, facts)
    client, viewer = page.user("user"), page.user("viewer")
    button = ">Unpause archive_orders</button>"
    assert button in client.get("/archiver/archives/orders").text
    assert button not in viewer.get("/archiver/archives/orders").text
    token = csrf_token(_Named("some viewer"))  # type: ignore[arg-type]
    answer = viewer.post(DO + "unpause", data={"csrf": token}, headers=OURS)
    assert (answer.status_code, answer.json()["detail"]) == (403, "You may not unpause archive_orders")
    assert client.post(DO + "unpause", data={"csrf": "a.b.c"}, headers=OURS).status_code == 403
    assert do(client, "unpause", Origin="https://evil.example").status_code == 403
    assert client.get(DO + "unpause").status_code == 405
    assert do(client, "run").status_code == 409
    answer = do(client, "unpause")
    assert "DAG archive_orders is no longer paused" in client.get(answer.headers["location"]).text
    assert do(client, "run").status_code == 303
    with session() as opened:
        *_, line = opened.scalars(select(Log).where(Log.event == "archiver_unpause").order_by(Log.id))
        assert (line.owner, line.dag_id) == ("some user", "archive_orders")
    # Its audit has a DAG of its own, which is not there.
    answer = do(client, "unpause-audit")
    assert (answer.status_code, "Airflow has no DAG &#39;audit_orders&#39;" in answer.text) == (409, True)


def test_a_finding_is_accepted_by_name_after_a_question_and_the_page_says_who(
    page: Page, session: Session, context: Context
) -> None:
    from airflow.models.log import Log
    from sqlalchemy import select

    client, viewer, name = page.user("user"), page.user("viewer"), "never-audited"
    shown = client.get("/archiver/archives/orders").text
    assert "no audit has ever compared the store with the ledger" in shown
    assert ">Accept that there was no audit</button>" in shown
    assert "airflow archive acknowledge orders never-audited" in shown
    assert "<p>Nothing" not in shown
    assert ">Accept " not in viewer.get("/archiver/archives/orders").text
    token = csrf_token(_Named("some viewer"))  # type: ignore[arg-type]
    refused = viewer.post(DO + "acknowledge", data={"csrf": token, "finding": name, "agreed": "1"}, headers=OURS)
    assert refused.status_code == 403
    question = do(client, "acknowledge", {"finding": name})
    assert (question.status_code, f"Accept {name} of orders?" in question.text) == (200, True)
    assert context.ledger.acknowledgement(name) is None
    answer = do(client, "acknowledge", {"finding": name, "agreed": "1", "note": "no room for one"})
    assert answer.status_code == 303
    decision = context.ledger.acknowledgement(name)
    assert decision
    assert (decision.by, decision.note, decision.accepted) == ("some user", "no room for one", True)
    after = client.get(answer.headers["location"]).text
    assert "Accepted by some user at " in after
    assert ">Accept that there was no audit</button>" not in after
    assert f"finding: {name}, why: no room for one</td>" in after
    assert confs(session) == []
    with session() as opened:
        [line] = opened.scalars(select(Log).where(Log.event == "archiver_acknowledge")).all()
        assert (line.owner, line.dag_id) == ("some user", "archive_orders")


@pytest.mark.parametrize("name", ["", "dead-letters:7", "<script>alert(1)</script>", "`airflow x`"])
def test_what_is_no_finding_is_not_accepted(page: Page, context: Context, name: str) -> None:
    answer = do(page.user("user"), "acknowledge", {"finding": name, "agreed": "1"})
    assert answer.status_code == 409
    assert "<script>alert" not in answer.text
    assert context.ledger.acknowledgements() == []


def test_a_backfill_is_created_for_the_hours_and_only_once(page: Page, session: Session) -> None:
    client, fields = page.user("user"), {"first": "2026-11-20T02:00", "last": "2026-11-20T04:00"}
    assert do(client, "backfill", fields).headers["location"].startswith("/archiver/archives/orders?started=backfill+")
    starts = [dag_run.data_interval_start.hour for dag_run in _runs(session)]
    assert sorted(starts) == [2, 3, 4]
    assert {dag_run.run_type for dag_run in _runs(session)} == {"backfill"}
    again = do(client, "backfill", fields)
    assert again.status_code == 409
    assert "Another backfill of archive_orders is not finished" in again.text


def test_a_backfill_notices_another_airflow(page: Page, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.models import backfill

    monkeypatch.setattr(backfill, "_create_backfill", lambda dag_id: None)
    answer = do(page.user("user"), "backfill", {"first": "2026-11-20T02:00", "last": "2026-11-20T04:00"})
    assert "does not support Airflow" in answer.text
    assert "airflow backfill create --dag-id archive_orders" in answer.text
    assert _runs(session) == []


def _runs(session: Session) -> list[Any]:
    from airflow.models import DagRun
    from sqlalchemy import select

    with session() as opened:
        dag_runs = list(opened.scalars(select(DagRun).order_by(DagRun.id)))
        opened.expunge_all()
        return dag_runs


# Other sites.


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Origin": "https://other.airflow.example", "Sec-Fetch-Site": "same-site"},
        {"Origin": SITE + ".evil.example"},
        {"Origin": "https://airflow.example"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://rebound.example", "Host": "rebound.example", "Sec-Fetch-Site": "same-origin"},
        {},
    ],
)
def test_a_request_of_another_site_does_nothing_even_with_the_users_cookie_and_token(
    page: Page, session: Session, headers: dict[str, str]
) -> None:
    client = page.user("admin")
    answer = client.post(DO + "run", data={"csrf": token_of(client)}, headers=headers)
    assert answer.status_code == 403
    assert confs(session) == []


@pytest.mark.parametrize("kind", ["none", "wrong", "of another user", "old"])
def test_without_the_forms_own_token_nothing_is_done(
    page: Page, session: Session, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = page.user("admin")
    token = {"none": "", "wrong": "a.b.c", "of another user": token_of(page.user("user")), "old": token_of(client)}[
        kind
    ]
    if kind == "old":
        monkeypatch.setattr("kafka_archiver.orchestration.page.access.GOOD", -1)
    answer = client.post(DO + "run", data={"csrf": token}, headers=OURS)
    assert (answer.status_code, "open the page again" in answer.text) == (403, True)
    assert confs(session) == []


def test_actions_take_only_forms(page: Page, session: Session) -> None:
    client = page.user("admin")
    assert client.post(DO + "run", json={"csrf": token_of(client)}, headers=OURS).status_code == 415
    assert do(client, "run", {"note": "x" * 70_000}).status_code == 413
    assert client.get(DO + "run").status_code == 405
    assert confs(session) == []


def test_the_local_names_of_one_machine_are_the_same_site(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://127.0.0.1:18080")
    client = page.user("admin")
    assert do(client, "run", Origin="http://localhost:18080").status_code == 303
    assert do(client, "run", Origin="http://localhost:18081").status_code == 403


# What the pages say.


def test_an_archive_shows_what_it_has_adopted_and_that_nobody_proved_it(page: Page, context: Context) -> None:
    context.ledger.create_adoption(
        Adoption(
            archive="orders",
            tool="lenses",
            adopted_from="s3://b/demo/",
            folder="demo/",
            adopted_at=datetime(2026, 11, 21, tzinfo=UTC),
            unknown=(),
            objects=3,
            rows=40,
            bytes=500,
            left_out={},
            examples=(),
            partitions=(),
        )
    )
    text = page.user("viewer").get("/archiver/archives/orders").text
    assert (
        '<dt>Adopted from lenses</dt><dd>40 records</dd><dd class="more">in 3 objects, unproven: in no hour</dd>'
        in text
    )


def test_the_list_has_the_figures_and_links_to_each_archive(
    page: Page, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime.now(UTC)
    failed = DagRun(
        run_id=f"manual__{moment:%Y-%m-%dT%H:%M:%S.%f+00:00}_of_somebody_with_a_long_name_and_a_ticket",
        state="failed", forward=True, date=moment, due=moment, ended=moment,
        failure=TaskFailure(task="plan", attempts=1, permanent=True, cause="ConfigError: no such connection"),
    )  # fmt: skip
    facts = Facts(dag_id="archive_orders", runs=(failed,))
    known_facts(monkeypatch, facts)
    brokers.logs[P0] = Range(0, 12_345)
    text = page.user("viewer").get("/archiver/").text
    assert '<a href="/archiver/archives/orders">orders</a>' in text
    assert "12,342" in text
    assert ">task plan failed: ConfigError: no such connection. Until" in text
    assert f'title="failed for good: run {failed.run_id} failed' in text
    assert "2026-11-20 03:00" in text


def test_the_list_s_figures_lead_to_what_is_behind_them(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    client, at = page.user("viewer"), "/archiver/archives/orders"
    text = client.get("/archiver/").text
    for path in ("#wrong", "#lag", "/hours/2026-11-20T02", f"/runs/{hour(2).id}"):
        assert f'href="{at}{path}"' in text, path
    letter = object_entry(plans.plan(1, plans.partition(0, 4)), 1, 0, key="_dead_letter/a b")
    for letters, viewed, looked_at in (
        (None, "#figures", "#figures"),
        (letter, "/hours/2026-11-21T05#reasons", "/hours/2026-11-21T05/dead-letters?key=_dead_letter%2Fa%20b"),
    ):
        monkeypatch.setattr(documents, "_last_letters", lambda _, letters=letters: letters)
        assert client.get(f"{at}/dead-letters").headers["location"] == f"{at}{viewed}"
        assert page.user("user").get(f"{at}/dead-letters").headers["location"] == f"{at}{looked_at}"
    assert page.user(None).get(f"{at}/dead-letters").status_code == 404


def test_the_list_s_search_leads_to_an_hour_or_record_or_asks_of_which_archive(page: Page, orders: Path) -> None:
    client, at = page.user("viewer"), "/archiver/archives/orders"

    def led(query: str) -> str:
        return str(client.get(f"/archiver/?q={quote(query)}").headers.get("location"))

    assert led("2026-11-20 02:00") == f"{at}/hours/2026-11-20T02"
    assert led(f"orders {hour(2).id}") == f"{at}/runs/{hour(2).id}"
    assert led("orders+3@12345") == f"{at}/records?at=orders%2B3%4012345"
    assert led("orders") == "None"
    assert led("scheduled__2026-11-20T02:00:00+00:00").startswith(f"{at}/dag-runs/scheduled__")
    assert "Account of DAG run manual__1" in client.get(f"{at}/dag-runs/manual__1").text
    assert "No archive's name has “&lt;b&gt;” in it, and it is no hour" in client.get("/archiver/?q=<b>").text
    assert "has topic &lt;b&gt;." in client.get(f"/archiver/?q={quote('<b>+3@1')}").text
    assert "No archive that you may see has topic clicks." in client.get(f"/archiver/?q={quote('clicks+3@1')}").text
    (orders.parent / "other.yaml").write_text(orders.read_text().replace("archive: orders", "archive: other"))
    text = client.get("/archiver/?q=2026-11-20T02").text
    assert "Hour 2026-11-20 02:00: of which archive?" in text
    assert f'<a href="{at}/hours/2026-11-20T02">orders</a>' in text
    assert led("other 2026-11-20T02") == "/archiver/archives/other/hours/2026-11-20T02"


def test_the_list_says_how_much_more_is_wrong_and_the_charts_have_the_values_as_tables(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_facts(monkeypatch, Facts(dag_id="archive_orders", paused=True, runs=()))
    page.refresh("orders")
    client = page.user("viewer")
    assert re.search(
        r'<a class="small" href="/archiver/archives/orders#wrong">\+\d more</a>', client.get("/archiver/").text
    )
    text = client.get("/archiver/archives/orders?last=2026-11-20").text
    assert '<table class="hidden"><caption>Records by hour</caption>' in text
    assert "2026-11-20 6 records, 2026-11-19 0 records, in all 6 records; at most " in text


def test_the_list_can_be_filtered_and_has_pages(page: Page, orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a1", "a2", "a3"):
        (orders.parent / f"{name}.yaml").write_text(orders.read_text().replace("archive: orders", f"archive: {name}"))
    client = page.user("viewer")

    def names(query: str) -> list[str]:
        return re.findall(r'<a href="/archiver/archives/(\w+)">', client.get(f"/archiver/{query}").text)

    assert sorted(names("")) == ["a1", "a2", "a3", "orders"]
    assert names("?q=ORD") == ["orders"]
    assert names("?q=nothing") == []
    assert names("?state=unhealthy&q=a") == []
    monkeypatch.setattr("kafka_archiver.orchestration.page.views.ROWS", 3)
    assert len(names("?page=1")) == 3
    look, asked = page.archive_snapshots.snapshots, list[Any]()

    def noted(*of: Any, **near: Any) -> Any:
        asked.append((*of, near))
        return look(*of, **near)

    monkeypatch.setattr(page.archive_snapshots, "snapshots", noted)
    [last] = names("?page=2")
    # Those on the screen are looked at first.
    assert asked[-1] == ([last], {"near": ON_SCREEN})
    assert names("?page=99") == names("?page=2")


def test_the_errors_of_yaml_files_are_for_those_who_see_import_errors(page: Page, orders: Path) -> None:
    (orders.parent / "wrong.yaml").write_text("archive: wrong\n")
    assert "wrong.yaml: `source` is required" in page.user("viewer").get("/archiver/").text
    assert "wrong.yaml" not in page.user(None).get("/archiver/").text


def test_hours_link_to_their_proofs(page: Page, context: Context) -> None:
    client = page.user("viewer")
    text = client.get("/archiver/archives/orders?last=2026-11-20").text
    assert 'href="/archiver/archives/orders/hours/2026-11-20T02" title="2026-11-20 02:00: complete, 2 records"' in text
    assert "Nothing is known of the 21 days before." in text
    assert '<a href="?last=2026-10-23">Days up to 2026-10-23</a> <a href="?last=2026-11-' in text
    proof = client.get("/archiver/archives/orders/hours/2026-11-20T02").text
    manifest = context.ledger.manifest(hour(2).id)
    assert manifest is not None
    own = [o for o in manifest.objects if "hour=02" in o.path]
    assert own
    for entry in own:
        assert entry.key in proof
        assert entry.checksum in proof
    assert "20261120T020000Z" in proof


def test_an_hours_dead_letters_have_their_reasons_and_a_button(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reason = details.read_hour, Reason(text="not JSON at byte 3", letters=12)

    def lettered(*arguments: Any) -> HourDetail:
        hour_in_store = read(*arguments)
        return hour_in_store.model_copy(update={"letters": hour_in_store.objects, "reasons": (reason,)})

    monkeypatch.setattr(details, "read_hour", lettered)
    text = page.user("user").get("/archiver/archives/orders/hours/2026-11-20T02").text
    assert '>not JSON at byte 3</th><td class="number">12</td>' in text
    assert "Counted in the beginning of up to five objects." in text
    assert '<th scope="col">Show</th>' in text
    assert "Archives all dead letters of their runs with today's settings, also those of other hours." in text
    assert "Reads all offsets of 1 run from Kafka again, also those of other hours" in text
    assert 'action="/archiver/archives/orders/do/dead-letters"' in text


def test_an_hour_leads_to_the_hours_beside_it_that_there_are(page: Page) -> None:
    def linked(start: datetime) -> list[str]:
        text = page.user("viewer").get(f"/archiver/archives/orders/hours/{start:%Y-%m-%dT%H}").text
        return re.findall(r'<a href="([^"]+)">(?:Earlier|Later) hour</a>', text)

    assert linked(datetime(2026, 11, 20, 2, tzinfo=UTC)) == ["2026-11-20T01", "2026-11-20T03"]
    assert linked(datetime(1970, 1, 1, tzinfo=UTC)) == ["1970-01-01T01"]
    assert len(linked(datetime.now(UTC))) == 1


@pytest.mark.parametrize("lost", [0, 5])
def test_an_incomplete_hour_has_its_reason_and_what_brings_the_rest_unless_objects_are_gone(
    page: Page, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    read, reason = details.read_hour, reason_of_holes("orders", "offsets 0–4 of orders, partition 0")

    def incomplete(*arguments: Any) -> HourDetail:
        hour_in_store = read(*arguments)
        assert hour_in_store.proof
        update = {"status": "incomplete", "reason": reason, "lost_rows": lost}
        return hour_in_store.model_copy(update={"proof": hour_in_store.proof.model_copy(update=update)})

    monkeypatch.setattr(details, "read_hour", incomplete)
    monkeypatch.setattr(details, "count_left_out", lambda *_: {P0: 5})
    text = page.user("user").get("/archiver/archives/orders/hours/2026-11-20T02").text
    lacks = "<p>the archive does not have offsets 0–4 of orders, partition 0, whose records may be of this hour</p>"
    assert lacks in text
    assert ('action="/archiver/archives/orders/do/fill"' in text) == (not lost)
    # The command stands once, beside its button.
    assert text.count("<code>airflow archive fill orders</code>") == (not lost)
    hour_page = page.user("viewer").get("/archiver/archives/orders/hours/2026-11-20T02").text
    assert hour_page.count("<code>airflow archive fill orders</code>") == (not lost)
    assert ">Backfill</button>" in text


def test_an_hour_of_which_kafka_has_nothing_more_has_no_button_that_fills_it(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, left_out = details.read_hour, {P0: 2}

    def incomplete(*arguments: Any) -> HourDetail:
        hour_in_store = read(*arguments)
        assert hour_in_store.proof
        proof = hour_in_store.proof.model_copy(update={"status": "incomplete", "reason": "orders[0] lacks some"})
        return hour_in_store.model_copy(update={"proof": proof})

    monkeypatch.setattr(details, "read_hour", incomplete)
    monkeypatch.setattr(details, "count_left_out", lambda *_: dict(left_out))
    fill, nothing = 'action="/archiver/archives/orders/do/fill"', "Kafka has none of these offsets any more"
    text = page.user("user").get("/archiver/archives/orders/hours/2026-11-20T02").text
    assert (fill in text, nothing in text) == (True, False)
    left_out.clear()
    page.refresh("orders")
    text = page.user("user").get("/archiver/archives/orders/hours/2026-11-20T02").text
    assert (fill in text, nothing in text) == (False, True)


def test_an_hour_that_lacks_lost_records_says_that_nothing_completes_it_before_it_is_over_too(
    page: Page, context: Context, brokers: Brokers
) -> None:
    brokers.logs.update({P0: Range(4, 5), P1: Range(3, 5)})
    run(replace(context, archive=context.archive.choosing({"lost_offsets": "record_loss"})), 3)
    client, hours = page.user("user"), "/archiver/archives/orders/hours/2026-11-20T"
    texts = [client.get(f"{hours}{number:02d}").text for number in (2, 3, 4)]
    for number, text in enumerate(texts):
        assert ("These records are gone. Nothing can complete this hour." in text) == (number == 1)
        assert ("This hour will be incomplete: offsets of orders[0] before 4 were lost" in text) == (number == 2)
        assert "do/fill" not in text
    account = client.get("/archiver/archives/orders/runs/20261120T030000Z").text
    assert '<dt>Offsets</dt><dd>4</dd><dd class="more">3 read, 1 lost</dd>' in account
    assert '<div class="note warning" id="lost">' in account
    assert "<li>orders, partition 0: offset 3 (1)</li>" in account
    # The figure of the list leads there.
    page.refresh("orders")
    assert '<a class="bad" href="/archiver/archives/orders/lost">1</a>' in client.get("/archiver/").text
    answer = client.get("/archiver/archives/orders/lost")
    assert answer.headers["location"] == "/archiver/archives/orders/runs/20261120T030000Z#lost"
    assert page.user(None).get("/archiver/archives/orders/lost").status_code == 404


def test_an_hour_has_its_proof_and_no_button_that_can_do_nothing(page: Page, context: Context) -> None:
    path = "/archiver/archives/orders/hours/2026-11-20T02"
    text, proof = page.user("user").get(path).text, context.ledger.hour(to_hour(hour(2).start))
    assert proof
    assert proof.complete_as_of
    assert f"that Kafka had at {proof.complete_as_of:%Y-%m-%d %H:%M:%S} UTC is archived (2 records)" in text
    assert f'<a href="{path}/proof">Proof</a>: <code>{context.store.url}/_ledger/orders/hours/' in text
    assert page.user("viewer").get(f"{path}/proof").content == proof.to_json()
    assert (">Rebuild</button>" in text, ">Backfill</button>" in text) == (True, False)
    unknown = page.user("user").get("/archiver/archives/orders/hours/2025-11-20T02")
    assert (">Rebuild</button>" in unknown.text, ">Backfill</button>" in unknown.text) == (False, True)
    future = page.user("user").get("/archiver/archives/orders/hours/2827-11-20T02").text
    assert ("This hour has not begun yet." in future, ">Backfill</button>" in future) == (True, False)
    assert page.user("viewer").get("/archiver/archives/orders/hours/2027-11-20T02/proof").status_code == 404
    assert page.user(None).get(f"{path}/proof").status_code == 404


def test_the_buttons_of_a_task_and_the_lists_of_runs_lead_to_a_run_s_documents(page: Page, context: Context) -> None:
    run = hour(2).id
    for document in ("plan", "manifest"):
        path = urlsplit(document_address("orders", run, document)).path
        answer = page.user("viewer").get(path)
        assert answer.content == context.store.get(f"_ledger/orders/runs/{run}/{document}.json")
        assert answer.headers["content-type"] == "application/json"
        assert page.stranger().get(path).headers["location"].startswith("/auth/login?next=")
        for shown in PAGES[1:3]:
            assert f'href="{path}"' in page.user("viewer").get(f"/archiver{shown}").text
    for wrong in (f"{run}+r7/plan", "x/plan", f"{run}/commit"):
        assert page.user("viewer").get(f"/archiver/archives/orders/runs/{wrong}").status_code in (404, 422)
    assert document_address("orders", None, "plan") == ""


def test_a_wrong_connection_is_not_called_a_missing_run(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise ConfigError("there is no Airflow connection 'aws_default'")

    monkeypatch.setattr(documents, "open_store", refuse)
    answer = page.user("viewer").get(f"/archiver/archives/orders/runs/{hour(2).id}/plan")
    assert (answer.status_code, "there is no Airflow connection" in answer.text) == (503, True)


def test_an_hours_runs_link_to_the_dag_runs_that_worked_on_them(page: Page, session: Session) -> None:
    user, name = page.user("user"), hour(2).id
    do(user, "backfill", {"first": "2026-11-20T02:00", "last": "2026-11-20T02:00"})
    for _ in range(4):
        do(user, "run")
    of_the_interval, *other_runs = _runs(session)
    plans = {of_the_interval: (f"{name}+r1",), **dict.fromkeys(other_runs, (hour(1).id, name))}
    for dag_run, plan_names in plans.items():
        with session() as opened:
            XComModel.set(
                XCOM_RETURN_KEY, {"runs": list(plan_names), "archive": []}, dag_id=dag_run.dag_id, task_id="plan",
                run_id=dag_run.run_id, session=opened,
            )  # fmt: skip
    text = page.user("viewer").get("/archiver/archives/orders/hours/2026-11-20T02").text
    linked = re.findall(r'href="/dags/archive_orders/runs/([^"/]+)(/tasks/archive)?"', text)
    last = [quote(run.run_id, safe="") for run in other_runs[1:]]
    assert linked == [(run, task) for run in last for task in ("", "/tasks/archive")]


@pytest.mark.parametrize("name", ["2026-11-20", "2026-11-20T25", "x", "2026-11-20T02:00"])
def test_an_hour_that_is_none_is_not_found(page: Page, name: str) -> None:
    answer = page.user("viewer").get(f"/archiver/archives/orders/hours/{name}")
    assert answer.status_code == 404


def test_the_last_run_has_what_its_dag_run_finished_before_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    at, last = datetime.now(UTC), "/archiver/archives/orders"
    assert re.search(r"<dt>Last run</dt><dd>\d+ records</dd><dd class=.more.>\d", page.user("viewer").get(last).text)
    done = DagRun(
        run_id="a", state="success", forward=True, date=at, due=at, begun=at, ended=at, finished=(hour(2).id,),
        wrote=Written(runs=2, records=50, bytes=1000),
    )  # fmt: skip
    facts = Facts(dag_id="archive_orders", runs=(done,))
    known_facts(monkeypatch, facts)
    page.refresh("orders")
    shown = '<dt>Last run</dt><dd>50 records</dd><dd class="more">1 kB, with 1 earlier run</dd>'
    assert shown in page.user("viewer").get(last).text


def test_what_is_wrong_is_shown_with_its_commands(page: Page, context: Context) -> None:
    manifest = context.ledger.manifest(hour(2).id)
    assert manifest is not None
    publish(context.store, audit(context.archive, context.store, context.clock()))
    text = page.user("user").get("/archiver/archives/orders").text
    assert "the audit at" in text
    assert "<code>airflow archive repair orders</code>" in text
    assert '<input type="checkbox" name="run" value="20261120T020000Z" checked>' in text


def test_an_hour_with_a_missing_object_is_damaged_and_can_be_repaired(page: Page, context: Context) -> None:
    manifest = context.ledger.manifest(hour(2).id)
    assert manifest is not None
    gone = next(o.key for o in manifest.objects if "hour=02" in o.path)
    publish(context.store, audit(context.archive, context.store, context.clock()))
    hours = "/archiver/archives/orders?last=2026-11-20"
    assert '<td class="damaged"><a href="/archiver/archives/orders/hours/2026-11-20T02"' in (
        page.user("viewer").get(hours).text
    )
    text = page.user("user").get("/archiver/archives/orders/hours/2026-11-20T02").text
    assert f'{gone} <span class="bad">≠ object missing</span>' in text
    assert f"<li><code>{gone}</code>: the object is missing</li>" in text
    assert "After the repair, objects that are whole are no longer marked ≠." in text
    assert '<input type="hidden" name="run" value="20261120T020000Z"><button>Repair 1 run</button>' in text
    assert "do/repair" not in page.user("viewer").get("/archiver/archives/orders/hours/2026-11-20T02").text


def test_a_policy_that_stops_runs_is_told_once_with_its_button(
    page: Page, context: Context, brokers: Brokers, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers.logs.update({P0: Range(6, 9), P1: Range(6, 9)})
    with pytest.raises(PolicyError) as raised:
        plan(context, hour(3), "scheduled")
    at, cause = datetime.now(UTC), str(raised.value)
    failed = DagRun(
        run_id="scheduled__3", state="failed", forward=True, date=at, due=at, ended=at, note=f"plan: {cause}",
        failure=TaskFailure(task="plan", attempts=1, permanent=True, cause=cause, kinds=raised.value.kinds),
    )  # fmt: skip
    facts = Facts(dag_id="archive_orders", runs=(failed,), audit_paused=True)
    known_facts(monkeypatch, facts)
    client = page.user("user")
    text = client.get("/archiver/archives/orders").text
    assert text.count("3 offsets of orders[0] are gone") == text.count("3 offsets of orders[1] are gone") == 1
    assert "run scheduled__3 failed in task plan, because of: lost offsets" in text
    assert (
        '<dd>never</dd>\n<dd class="more"><a data-airflow href="/dags/audit_orders">its DAG</a> is paused</dd>' in text
    )
    assert "correct the cause" not in text
    field = '<input type="hidden" name="policy.lost_offsets" value="record_loss">'
    button = f'{field}<button class="danger">Record the loss and go on</button>'
    assert button in text
    assert button in client.get("/archiver/archives/orders/plan").text
    for path in PAGES[1:]:
        assert '<form method="post"' not in page.user("viewer").get(f"/archiver{path}").text
    asked = do(client, "run", {"policy.lost_offsets": "record_loss"})
    assert (asked.status_code, confs(session)) == (200, [])
    assert "3 offsets of orders[0] are gone" in asked.text
    assert "<h1>Record the loss?</h1>" in asked.text
    assert "<li>3 offsets (orders, partition 0, offsets 3–5) are recorded as lost for ever.</li>" in asked.text
    assert re.search(r"<li>No hour before .* UTC that is not complete now can become complete[.]</li>", asked.text)
    assert "<li>6 waiting offsets are archived.</li>" in asked.text
    assert '<input type="hidden" name="policy.lost_offsets" value="record_loss">' in asked.text
    assert do(client, "run", {"policy.lost_offsets": "record_loss", "agreed": "1"}).status_code == 303
    assert confs(session) == [{"policies": {"lost_offsets": "record_loss"}}]


def test_airflows_tabs_show_the_archive_of_a_dag_and_the_accounts_of_a_dag_run(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, viewer = page.user("user"), page.user("viewer")
    for dag in ("archive_orders", "audit_orders"):
        answer = client.get(f"/archiver/dags/{dag}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/archiver/archives/orders")
    assert "belongs to no archive" in client.get("/archiver/dags/another").text
    assert page.user(None).get("/archiver/dags/archive_orders").status_code == 404
    monkeypatch.setattr(
        "kafka_archiver.orchestration.page.accounts.planned_work_of",
        lambda _, run_id: PlannedWork(("20261120T020000Z",), ()) if run_id == "manual__1" else None,
    )
    account = viewer.get("/archiver/dags/archive_orders/runs/manual__1").text
    assert "Run 20261120T020000Z" in account
    assert re.search(r"<strong>all</strong></th><td></td>\s*<td class=\"number\"><strong>6</strong>", account)
    nothing = viewer.get("/archiver/dags/archive_orders/runs/manual__2").text
    assert "planned nothing yet" in nothing
    assert '<a href="/archiver/archives/orders#wrong">orders says why</a>' in nothing
    assert "Run 20261120T020000Z" in viewer.get("/archiver/archives/orders/runs/20261120T020000Z").text
    assert viewer.get("/archiver/archives/orders/runs/20200101T000000Z").text.count("has no run 20200101T000000Z") == 1


def test_a_year_is_a_table_of_days_each_with_the_state_of_its_worst_hour(page: Page) -> None:
    client = page.user("viewer")
    text = client.get("/archiver/archives/orders/year?last=2026-11-20").text
    assert re.search(r'<td class="complete"><a href="/archiver/archives/orders\?last=2026-11-20#hours"', text)
    assert "2026-11-20: 2 hours complete" in text
    assert text.count('<tr><th scope="row">20') == 13
    assert client.get("/archiver/archives/orders/year?last=0001-01-01").status_code == 200


def test_the_page_lists_what_people_did_and_not_what_they_had_shown(page: Page, session: Session) -> None:
    client = page.user("user")
    with session() as opened:
        extra = json.dumps({"full_command": "['airflow', 'dags', 'list-runs', 'archive_orders']"})
        opened.add(Log(event="cli_dag_list_dag_runs", dag_id="archive_orders", owner="ann", extra=extra))
    assert do(client, "run").status_code == 303
    until(lambda: "Actions of people" in client.get("/archiver/archives/orders").text)
    text = client.get("/archiver/archives/orders").text
    assert re.search(r"<td>run</td><td class=\"words\">started: manual__", text)
    assert "list-runs" not in text


def test_a_command_that_changes_the_archive_is_among_what_people_did(
    page: Page, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["/opt/bin/airflow", "archive", "acknowledge", "orders", "never-audited", "--by", "ann"]
    monkeypatch.setattr(sys, "argv", line)
    acknowledge(Namespace(archive="orders", finding="never-audited", list=False, undo=False, by="ann", note="",
                          output="json"))  # fmt: skip
    text = page.user("user").get("/archiver/archives/orders").text
    assert re.search(
        r"<td>command</td><td class=\"words\">airflow archive acknowledge orders never-audited --by ann", text
    )


def test_who_may_trigger_the_dag_looks_at_records_and_every_look_is_noted(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, at = page.user("user"), f"{P0.topic}+{P0.partition}@0"
    path = f"/archiver/archives/orders/records?count=2&at={quote(at)}"
    assert client.get(path).status_code in (200, 400)
    with session() as opened:
        assert len(opened.scalars(select(Log.event).where(Log.event == "archiver_look")).all()) == 1
    assert page.user("viewer").get(path).status_code == 403
    assert page.user(None).get(path).status_code == 404
    assert client.get("/archiver/archives/orders/records?at=nonsense").status_code == 400
    # No object of another archive, and none that the hour does not have.
    hidden = "/archiver/archives/orders/hours/2026-11-20T02/dead-letters?key=_dead_letter/other.jsonl.gz"
    assert client.get(hidden).status_code == 404
    monkeypatch.setenv("ARCHIVER_PAGE_RECORDS", "none")
    assert client.get(path).status_code == 403


def test_a_dead_letter_looked_up_by_its_offset_is_shown_with_its_reason(
    page: Page, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_of_run = context.ledger.plan(hour(2).id)
    assert plan_of_run
    letter = object_entry(plan_of_run, 1, 0, key="_dead_letter/orders/0.jsonl.gz", path="date=2026-11-20/hour=01")
    lines = [f'{{"topic":"orders","partition":0,"offset":{n},"value":"x","error":"not JSON {n}"}}\n' for n in (0, 1)]
    context.store.create(letter.key, gzip.compress("".join(lines).encode()))

    def is_dead_letter(*_: Any) -> Any:
        raise DeadLetterError("orders[0] offset 1 is a dead letter", letter)

    monkeypatch.setattr("kafka_archiver.reader.lookup.Lookup.located", is_dead_letter)
    answer = page.user("user").get("/archiver/archives/orders/records?at=orders%2B0%401")
    shown = ("not JSON 1" in answer.text, "not JSON 0" in answer.text, 'role="alert"' in answer.text)
    assert (answer.status_code, *shown) == (200, True, False, False)
    assert f"<code>airflow archive print {context.store.url}/{letter.key}</code>" in answer.text
    assert f'<dt>stored in</dt><dd><span class="mono">{context.store.url}/{letter.key}</span>' in answer.text
    assert 'orders/hours/2026-11-20T01/dead-letters?key=_dead_letter%2Forders%2F0.jsonl.gz">' in answer.text
    context.store.delete(letter.key)
    gone = page.user("user").get("/archiver/archives/orders/records?at=orders%2B0%401")
    assert (gone.status_code, "orders[0] offset 1 is a dead letter" in gone.text) == (400, True)


@pytest.mark.parametrize(
    ("failure", "offered"),
    [
        (ConfigError("nobody can tell it.", *advise(print_object("s3://a/b"))), "airflow archive print s3://a/b"),
        (ConfigError("orders[0] offset 1 is not archived: Kafka had no record there"), ""),
        (TransientError("the store does not answer"), "airflow archive get orders orders+0@1 --count 5"),
    ],
)
def test_a_record_that_is_not_shown_has_the_command_that_helps_or_none(
    page: Page, monkeypatch: pytest.MonkeyPatch, failure: ArchiverError, offered: str
) -> None:
    def fails(*_: Any) -> Any:
        raise failure

    monkeypatch.setattr("kafka_archiver.reader.lookup.Lookup.located", fails)
    answer = page.user("user").get("/archiver/archives/orders/records?at=orders%2B0%401")
    assert (answer.status_code, failure.message in answer.text) == (400, True)
    commands = re.findall(r'<div class="command"><code>(.*?)</code>', answer.text)
    assert commands == ([offered] if offered else [])


@pytest.mark.parametrize("policy", ["recreated_topic", "moved_group"])
def test_a_new_generation_is_asked_for_twice(page: Page, session: Session, policy: str) -> None:
    client, fields = page.user("user"), {f"policy.{policy}": "new_generation"}
    asked = do(client, "run", fields)
    assert (asked.status_code, confs(session)) == (200, [])
    assert "<h1>Begin a new generation?</h1>" in asked.text
    assert f"The run decides by {policy}: new_generation. What it records" in asked.text
    assert do(client, "run", {**fields, "agreed": "1"}).status_code == 303
    assert confs(session) == [{"policies": {policy: "new_generation"}}]


def test_a_rebuild_is_asked_for_twice_with_the_counts_of_what_it_replaces(page: Page, session: Session) -> None:
    client = page.user("user")
    for fields in ({"hour": "2026-11-20T00:00"}, {"run": "20261120T020000Z"}):
        asked = do(client, "rebuild", {**fields, "keep": "1"})
        assert (asked.status_code, confs(session)) == (200, [])
        only = " – not only 00:00" * ("hour" in fields)
        assert f"It rewrites 1 run: 6 records, 4 objects (6 kB), in 2 hours{only}." in asked.text
        assert "It reads 6 offsets from Kafka again" in asked.text
        [(name, value)] = fields.items()
        assert f'<input type="hidden" name="{name}" value="{value}">' in asked.text
        assert '<input type="hidden" name="keep" value="1">' in asked.text
        assert "are removed once" not in asked.text
    refused = do(client, "rebuild", {"hour": "2026-11-20T09:00"})
    assert (refused.status_code, "has no records of hour 2026-11-20T09:00:00Z" in refused.text) == (409, True)


def test_the_plan_says_what_a_run_would_do_and_writes_nothing(page: Page, context: Context, brokers: Brokers) -> None:
    brokers.logs[P0] = Range(0, 5)
    before = {stat.key for stat in context.store.list("")}
    text = page.user("viewer").get("/archiver/archives/orders/plan").text
    assert "If a run began now: 2 offsets in 1 chunk, as run " in text
    assert {stat.key for stat in context.store.list("")} == before


def test_brokers_that_do_not_answer_leave_the_rest_of_the_page(page: Page, brokers: Brokers) -> None:
    brokers.failure = TransientError("no broker answers at <b>broker:9092</b>")
    client = page.user("viewer")
    text = client.get("/archiver/archives/orders?last=2026-11-20").text
    assert text.count("no broker answers at &lt;b&gt;broker:9092&lt;/b&gt;") == 1
    assert re.search("Unknown</span> lag, brokers .*</h3>\n<p>unknown until the brokers answer", text)
    assert re.search(r"<dt>Last run</dt><dd>\d+ records", text)
    assert "hours/2026-11-20T02" in text
    assert "no broker answers" in client.get("/archiver/archives/orders/plan").text


def test_a_store_that_does_not_answer_is_said_and_not_a_traceback(
    page: Page, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = itertools.count()

    def fail(*_: Any) -> Any:
        raise TransientError(f"no store answers (request A{next(number)}F)")

    monkeypatch.setattr(type(context.store), "version", fail)
    monkeypatch.setattr(type(context.store), "read", fail)
    at = datetime.now(UTC)
    failed = DagRun(
        run_id="scheduled__3", state="failed", forward=True, date=at, due=at, ended=at,
        failure=TaskFailure(task="plan", attempts=1, permanent=True, cause="no store answers (request 77)"),
    )  # fmt: skip
    facts = Facts(dag_id="archive_orders", runs=(failed,))
    known_facts(monkeypatch, facts)
    client = page.user("viewer")
    for path in PAGES[1:]:
        answer = client.get(f"/archiver{path}")
        assert (answer.status_code, "no store answers" in answer.text) == (200, True), path
    text = client.get("/archiver/archives/orders").text
    # The cause once, with the failed run and a link to it.
    assert text.count("no store answers") == 1
    assert "run scheduled__3 failed in task plan, because of: answers" in text
    assert '/dags/archive_orders/runs/scheduled__3"' in text
    assert re.search("Unknown</span> lag, age, hours, records, plans, brokers, audit .*</h3>", text)
    for name in ("Last run", "Last audit", "Lost for ever"):
        assert f"<dt>{name}</dt><dd>unknown</dd>" in text
    assert "nothing is archived yet" not in text


def test_an_answer_that_takes_long_is_not_waited_for(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("details", "views"):
        monkeypatch.setattr(f"kafka_archiver.orchestration.page.{module}.PATIENCE", 0)
    monkeypatch.setattr(details.Details, "_read", lambda *_: _never())
    client = page.user("viewer")
    assert "this page reloads by itself" in client.get("/archiver/archives/orders").text
    assert "this page reloads by itself" in client.get("/archiver/archives/orders/plan").text


def test_an_old_look_is_shown_as_old_until_a_fresh_one_is_there(
    page: Page, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, go_on = page.user("user"), Event()
    assert "data-refresh" not in client.get("/archiver/archives/orders").text
    brokers.logs[P0] = Range(0, 12_345)
    monkeypatch.setattr(page.details._cache, "_clock", lambda: time.monotonic() + 1200)
    monkeypatch.setattr(brokers, "members", lambda _: go_on.wait(60) and [])
    old = client.get("/archiver/archives/orders").text
    assert "old; refreshing" in old
    assert "12,342 offsets" not in old
    go_on.set()
    until(lambda: "old; refreshing" not in client.get("/archiver/archives/orders").text)
    assert "12,342 offsets" in client.get("/archiver/archives/orders").text
    # The list knows it from the same look.
    assert ">12,342</a></td>" in client.get("/archiver/").text
    # What was known before an action is old.
    brokers.logs[P0] = Range(0, 12_346)
    do(client, "run")
    assert "12,343 offsets" in client.get("/archiver/archives/orders").text


def test_that_nobody_looked_for_hours_is_no_finding_of_an_archive(page: Page, context: Context) -> None:
    archive = page.archive_snapshots.archives().valid["orders"]
    [snapshot] = page.archive_snapshots.snapshots(["orders"], 10).values()
    assert snapshot is not None
    old = snapshot.model_copy(update={"taken_at": snapshot.taken_at - timedelta(hours=9)})
    moment = datetime.now(UTC)
    assert page.archive_snapshots.checks(archive, old, moment) == page.archive_snapshots.checks(
        archive, old, old.taken_at
    )
    page.archive_snapshots._cache._wanted_since["orders"] = time.monotonic() - 3600
    answers = page.archive_snapshots.checks(archive, old, moment)[0]
    assert (answers.severity, "awaited for 60 minutes" in answers.text) == ("unknown", True)


def test_the_figures_never_deny_what_the_table_of_hours_shows(
    page: Page, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair and an audit that come in the middle of a look are seen by all parts of the page, or by none."""
    store, client, key = context.store, page.user("user"), audit_document("orders")
    publish(store, audit(context.archive, store, datetime.now(UTC)))
    damaged = store.get(key) or b""
    clean = json.dumps({**json.loads(damaged), "verdict": "clean", "findings": []}).encode()
    real, reports = type(store).read, itertools.cycle([clean, damaged])

    def read(of: Any, asked: str, *bounds: Any) -> Any:
        data = real(of, asked, *bounds)
        if asked == key:
            of.put(key, next(reports))
        return data

    monkeypatch.setattr(type(store), "read", read)
    all_states = set()
    for _ in range(4):
        page.refresh()
        text = client.get("/archiver/archives/orders?last=2026-11-20").text
        [repairs] = re.findall(r'<div id="to-repair" data-live>(.*?)</div>', text, re.DOTALL)
        shown = '<dd class="bad">damaged' in text, '<td class="damaged">' in text, "found the archive damaged" in text
        states = (*shown, 'name="run"' in repairs)
        assert len(set(states)) == 1, states
        all_states.add(states)
    assert len(all_states) == 2


def test_an_old_hour_or_plan_says_that_it_is_old(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    client, go_on = page.user("viewer"), Event()

    def are_stale() -> list[bool]:
        return ["old; refreshing" in client.get(f"/archiver{path}").text for path in PAGES[2:]]

    assert are_stale() == [False, False]
    monkeypatch.setattr(details, "NEAR", Near(0, 0))
    for name in ("read_hour", "preview"):
        read = getattr(details, name)
        monkeypatch.setattr(details, name, lambda *arguments, read=read: go_on.wait(60) and read(*arguments))
    assert are_stale() == [True, True]
    go_on.set()


def _never() -> Any:
    raise RuntimeError("not yet")


def test_a_form_has_each_choice_of_each_policy(page: Page) -> None:
    text = page.user("user").get("/archiver/archives/orders").text
    assert set(choices()) == set(Policies.model_fields)
    for policy, options in choices().items():
        assert f'name="policy.{policy}"' in text
        for option in options:
            assert f"<option>{option}</option>" in text


def test_browsers_get_errors_as_pages_and_others_as_json(page: Page) -> None:
    client = page.user("viewer")
    assert client.get("/archiver/archives/nothing").json() == {
        "detail": "There is no such archive, or you may not see it"
    }
    assert 'role="alert"' in client.get("/archiver/archives/nothing", headers=WIDE).text
    nowhere = client.get("/archiver/nowhere", headers=WIDE)
    assert (nowhere.status_code, "<h1>There is no such page</h1>" in nowhere.text) == (404, True)
    assert '<a href="/archiver/">Archives</a></p>' in nowhere.text
    assert "Not Found" not in nowhere.text
    assert client.get("/archiver/static/secrets.py").status_code == 404
    assert client.get("/archiver/docs").status_code == 404
    assert client.get("/archiver/openapi.json").status_code == 404


@pytest.mark.parametrize("last", ["0001-01-01", "1969-12-31", "9999-12-31", "2026-11-20"])
def test_any_day_can_be_asked_for(page: Page, last: str) -> None:
    text = page.user("viewer").get(f"/archiver/archives/orders?last={last}").text
    days = re.findall(r'<th scope="row">(\d{4})-', text)
    assert len(days) >= 7
    assert {"1969", "1970", "2026"} >= set(days)


@pytest.mark.parametrize("query", ["?last=nonsense", "?last=2026-02-30", "?last=99999999999999999999"])
def test_a_wrong_value_in_the_address_is_said_on_a_page(page: Page, query: str) -> None:
    answer = page.user("viewer").get(f"/archiver/archives/orders{query}", headers=WIDE)
    assert answer.status_code == 422
    assert "`last`: Input should be a valid date" in answer.text


def test_no_cache_keeps_what_only_some_may_see(page: Page) -> None:
    client = page.user("viewer")
    run = hour(2).id
    for path in (*PAGES, "/health", "/metrics", f"/archives/orders/runs/{run}/plan", "/archives/nothing"):
        headers = client.get(f"/archiver{path}").headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff"), path
    assert client.get("/archiver/static/page.css").headers["cache-control"] == "max-age=300"


def test_the_login_leads_back_to_what_was_asked_for(page: Page) -> None:
    location = page.stranger().get("/archiver/archives/orders?last=2026-11-20").headers["location"]
    assert location.endswith("next=%2Farchiver%2Farchives%2Forders%3Flast%3D2026-11-20")


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    client = page.user("user")
    for path in PAGES:
        text = client.get(f"/archiver{path}").text
        assert not re.search(r'(src|href|action)="(https?:)?//', text)
        assert "<style" not in text
        assert " style=" not in text
        assert not re.search(r"<script(?! src)", text)
        assert " onclick=" not in text
    for name in ("page.css", "page.js"):
        assert "http" not in client.get(f"/archiver/static/{name}").text


def test_below_a_path_of_a_proxy_all_links_keep_it(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", f"{SITE}/team/airflow")
    page.server.root_path = "/team/airflow"
    text = page.user("user").get("/team/airflow/archiver/archives/orders").text
    links = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
    login = page.stranger().get("/team/airflow/archiver/").headers["location"]
    assert login.endswith("/login?next=%2Fteam%2Fairflow%2Farchiver%2F"), login
    assert links
    assert all(link.startswith("/team/airflow/") for link in links), links


# Restores.


@pytest.fixture
def restoring(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Airflow lets the users of this page restore; what they start is in the list."""
    triggered: list[dict[str, Any]] = []

    def start(dag: str, conf: dict[str, Any], user: str) -> str:
        triggered.append({"dag": dag, "user": user, **conf})
        return "manual__1"

    monkeypatch.setattr("kafka_archiver.orchestration.page.action_routes.start_run", start)
    return triggered


def question(client: TestClient, fields: dict[str, Any]) -> str:
    """Return what the page asks before a restore, once it has read the ledger."""
    sent = do(client, "restore", fields)
    assert sent.status_code == 303, sent.text
    return until(lambda: (text := client.get(sent.headers["location"]).text) and "data-refresh" not in text and text)


def test_a_restore_is_asked_for_with_the_counts_of_its_dry_run_and_looks_dangerous_where_it_is(
    page: Page, restoring: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = page.user("user")
    asked: list[Any] = []

    def judged(demands: Any, *_: Any) -> list[Any]:
        asked.append(demands)
        return []

    for name, stand_in in (("gather_facts", lambda *_: None), ("judge", judged)):
        monkeypatch.setattr(f"kafka_archiver.work.restore.prepare.{name}", stand_in)
    assert ">Show what it would write</button>" in client.get("/archiver/archives/orders/restores").text
    assert 'method="post"' not in page.user("viewer").get("/archiver/archives/orders/restores").text
    fields = {"rename": "orders=copy", "from": "2026-11-20T00:00", "until": "2026-11-20 03:00", "allow": "values_only"}
    shown = question(client, {**fields, "create": "1"})
    assert "orders to copy: 6 records of 2 partitions, from " in shown
    assert "Topics that are missing are created." in shown
    assert "values_only is allowed" in shown
    assert '<button class="danger">Yes, start it' in shown
    assert [demand.topic for demand in asked[0]] == ["copy"]
    assert restoring == []
    assert do(page.user("viewer"), "restore", fields).status_code == 403
    asking = "/archiver/archives/orders/restores/question"
    assert page.user("viewer").get(asking).status_code == 403
    assert client.get(f"{asking}?from=noon").status_code == 422
    answer = do(client, "restore", {**fields, "agreed": "1"})
    assert answer.headers["location"].startswith("/archiver/archives/orders/restores?started=manual__1")
    assert restoring == [
        {
            "dag": "restore_orders", "user": "some user", "rename": ["orders=copy"], "allow": ["values_only"],
            "from": "2026-11-20T00:00:00Z", "until": "2026-11-20T03:00:00Z",
        }
    ]  # fmt: skip
    assert "It writes to orders, which orders archives" in question(client, {"allow": "values_only"})
    inexact = question(client, {"rename": "orders=copy"})
    assert ("values_only" in inexact, "Yes, start it" in inexact, len(restoring)) == (True, False, 1)


def test_the_question_of_a_restore_says_at_once_that_the_ledger_is_being_read(
    page: Page, restoring: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Event()

    def slow(*_: Any) -> Any:
        assert read.wait(60)
        return gather(*_)

    monkeypatch.setattr("kafka_archiver.orchestration.page.details.QUESTION_PATIENCE", 0.01)
    monkeypatch.setattr("kafka_archiver.work.restore.prepare.gather", slow)
    monkeypatch.setattr("kafka_archiver.work.restore.prepare.gather_facts", lambda *_: None)
    monkeypatch.setattr("kafka_archiver.work.restore.prepare.judge", lambda *_: [])
    client, fields = page.user("user"), {"rename": "orders=copy", "allow": "values_only"}
    asking = do(client, "restore", fields).headers["location"]
    waiting = client.get(asking).text
    assert ("The ledger and the target are being read" in waiting, "Yes, start it" in waiting) == (True, False)
    read.set()
    assert "Yes, start it" in question(client, fields)


def test_a_restore_that_the_target_is_not_ready_for_starts_nothing_and_says_what_to_do(
    page: Page, restoring: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = [problem("topic missing", "topic copy does not exist", Action("look", "make it"))]
    for name, stand_in in (("gather_facts", lambda *_: None), ("judge", lambda *_: lacks)):
        monkeypatch.setattr(f"kafka_archiver.work.restore.prepare.{name}", stand_in)
    client = page.user("user")
    for fields, reason in (
        ({"rename": "orders=copy", "allow": "values_only"}, "topic copy does not exist"),
        ({"topics": "nothing"}, "the archive has no topic"),
    ):
        refused = question(client, fields)
        assert (reason in refused, "Yes, start it" in refused) == (True, False), refused
    for fields, reason in (
        ({"topics": "t" * 7000}, "expected at most 6,000"),
        ({"from": "noon"}, "`from`: expected a time like 2026-11-21T05:00, UTC, found &#39;noon&#39;"),
        ({"start": "-1"}, "`start`: expected a number from 0 on, found &#39;-1&#39;"),
    ):
        refused = do(client, "restore", fields)
        assert (refused.status_code, reason in refused.text) == (409, True), refused.text
    assert restoring == []


def test_the_restores_of_an_archive_are_listed_with_their_state(page: Page, context: Context) -> None:
    assert "Nothing of this archive has been restored yet" in (
        page.user("viewer").get("/archiver/archives/orders/restores").text
    )
    topics = (TargetTopic(source="orders", topic="copy", topic_id="id", starts=(0,)),)
    source = RestoreSource(topic="orders", partition=0, records=7)
    for name in ("first", "second", "third"):
        plan_of_restore = RestorePlan(
            archive="orders", restore=name, planned_at=datetime.now(UTC), through=1, cluster_id="c", group="g",
            selection=RestoreSelection(topics=("orders",)), topics=topics, sources=(source,),
        )  # fmt: skip
        context.ledger.create_restore_plan(plan_of_restore)
        part = PartitionReport(
            topic="copy", partition=0, offsets=(0, 8), selected=7, written=7, records=7, markers=1, aborted=0,
            digest="d", expected_digest="d" if name == "first" else "e",
            difference="" if name == "first" else "copy[0]: offset 3 differs",
        )  # fmt: skip
        if name != "third":
            report = RestoreReport(
                archive="orders", restore=name, plan_digest=plan_of_restore.digest, at=datetime.now(UTC),
                verified=part.verified, partitions=(part,),
            )  # fmt: skip
            context.ledger.replace_of_restore(report, context.ledger.restore_report(name))
    page.refresh()
    text = page.user("viewer").get("/archiver/archives/orders/restores").text
    rows = re.findall(r'<th scope="row">(\w+)</th><td><span class="pill \w*">([\w ]+)</span>', text)
    assert sorted(rows) == [("first", "verified"), ("second", "not verified"), ("third", "planned")]
    assert "orders → copy" in text
    assert "copy[0]: offset 3 differs" in text


# A new archive.


def test_the_form_of_a_new_archive_gives_a_yaml_that_is_valid_and_writes_nothing(
    page: Page, brokers: Brokers, orders: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, before = page.user("user"), sorted(orders.parent.iterdir())
    monkeypatch.setattr("kafka_archiver.orchestration.page.new_archive.Cluster", lambda *_: brokers)
    objects = [PreviewedObject(key="eu/2026/orders+0+00000000000000000000.jsonl.gz", rows=3, bytes=90)]
    monkeypatch.setattr("kafka_archiver.orchestration.page.new_archive.preview_keys", lambda _: objects)
    assert 'href="/archiver/new">New archive</a>' in client.get("/archiver/").text
    assert "/archiver/new" not in page.user("viewer").get("/archiver/").text
    assert page.user("viewer").get("/archiver/new?kafka=kafka_default").status_code == 403
    assert page.stranger().get("/archiver/new").status_code == 303
    assert "no such connection" not in client.get("/archiver/new").text
    assert 'role="alert"' in client.get("/archiver/new?kafka=nothing").text
    empty = client.get("/archiver/new?kafka=kafka_default").text
    assert ('name="topics" value="orders"' in empty, "is missing" in empty) == (True, False)
    assert "is missing: Store, a topic." in client.get("/archiver/new?kafka=kafka_default&name=a").text
    form = {
        "kafka": "kafka_default", "topics": "orders", "name": "new", "url": "s3://bucket/lake", "layout": "fields",
        "fields": "value.country", "decode": "json", "schedule": "0 * * * *", "look": "1",
    }  # fmt: skip
    shown = client.get("/archiver/new", params=form).text
    [text] = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", shown, re.DOTALL)
    archive = parse_archive(unescape(text), "new.yaml")
    assert (archive.archive, archive.source.topics, archive.schedule) == ("new", ("orders",), "0 * * * *")
    assert archive.store.layout == {"fields": ["value.country"]}
    # Defaults are left out.
    assert "kafka_default" not in text
    assert objects[0].key in shown
    assert "<h3>Where the newest records would be stored</h3>" in shown
    assert "A sample: up to 5 topics, 3 partitions each, 5 records each." in shown
    with session() as opened:
        [line] = opened.scalars(select(Log).where(Log.event == "archiver_look", Log.dag_id == "archive_new"))
        assert line.owner == "some user"
    monkeypatch.setenv("ARCHIVER_PAGE_RECORDS", "none")
    unseen = client.get("/archiver/new", params=form).text
    assert (objects[0].key in unseen, "ARCHIVER_PAGE_RECORDS decides it" in unseen) == (False, True)
    assert sorted(orders.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "orders"}, "there is an archive orders already"),
        ({"layout": "path", "path": "{nothing}"}, "store.layout"),
        ({"start": "yesterday"}, "<code>source.start</code>"),
        ({"layout": "fields", "fields": "value.x"}, "value"),
        ({"url": "s3://${HOME}"}, "HOME"),
    ],
)
def test_the_form_of_a_new_archive_says_what_is_wrong_and_at_which_line(
    page: Page, brokers: Brokers, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], message: str
) -> None:
    monkeypatch.setattr("kafka_archiver.orchestration.page.new_archive.Cluster", lambda *_: brokers)
    form = {"kafka": "kafka_default", "topics": "orders", "name": "new", "url": "s3://bucket/lake", **fields}
    text = page.user("user").get("/archiver/new", params=form).text
    [alert] = re.findall(r'<div class="note failing" role="alert">(.*?)</div>', text, re.DOTALL)
    assert message in alert
    assert "Save it as" not in text
    assert ("already" in alert) or ("<li>line " in alert) or fields.get("fields")


# The panel on Airflow's dashboard.


def test_the_dashboard_hears_of_archives_for_which_somebody_has_to_act_and_of_no_other(
    page: Page, context: Context, orders: Path
) -> None:
    viewer = page.user("viewer")
    assert page.stranger().get("/archiver/trouble").status_code == 401
    nothing = {"archives": [], "more": 0, "files": []}
    assert viewer.get("/archiver/trouble").json() == {**nothing, "awaited": True}
    page.refresh("orders")
    # A warning is no trouble: it has never been audited.
    assert viewer.get("/archiver/trouble").json() == {**nothing, "awaited": False}
    publish(context.store, audit(context.archive, context.store, datetime.now(UTC)))
    page.refresh("orders")
    [row] = viewer.get("/archiver/trouble").json()["archives"]
    assert (row["name"], row["dag"], "damaged" in row["cause"]) == ("orders", "archive_orders", True)
    assert row["do"].startswith("airflow archive repair orders")
    (orders.parent / "wrong.yaml").write_text("archive: wrong\n")
    assert "wrong.yaml: `source` is required" in page.user("admin").get("/archiver/trouble").json()["files"][0]
    assert page.user(None).get("/archiver/trouble").json()["files"] == []
    assert page.user(None).get("/archiver/trouble").json()["archives"] == []
    [panel] = ArchiverPlugin.react_apps
    assert panel["destination"] == "dashboard"
    program = viewer.get(panel["bundle_url"])
    # Airflow looks for it by the name.
    assert (program.headers["content-type"].split(";")[0], f'"{panel["name"]}"' in program.text) == (
        "text/javascript", True,
    )  # fmt: skip


# Work that goes on.


def test_the_page_shows_how_far_the_jobs_of_running_runs_are(
    page: Page, session: Session, monkeypatch: pytest.MonkeyPatch, archive: MakeArchive
) -> None:
    from airflow.models import DagRun as Row

    do(page.user("user"), "run")
    ti, line = PushedXComs(), "12 of 40 chunks (30 %), 82,000 offsets/s, 2 min 3 s left"
    progress_keeper(ti, "20261120T020000Z")(line)
    with session() as opened:
        [row] = opened.scalars(select(Row))
        row.state = "running"
        XComModel.set(
            "progress", ti.pushed["progress"], dag_id=row.dag_id, task_id="archive", run_id=row.run_id, session=opened
        )
    [run] = facts_of(archive(), datetime.now(UTC)).runs
    assert run.progress
    assert (run.progress.run, run.progress.text, run.progress.percent) == ("20261120T020000Z", line, 30)
    known_facts(monkeypatch, Facts(dag_id="archive_orders", runs=(run.model_copy(update={"task": "archive"}),)))
    page.refresh()
    text = page.user("viewer").get("/archiver/archives/orders").text
    assert 'Run 20261120T020000Z: <progress max="100" value="30" aria-label="Progress of run' in text
    assert line in text
    assert re.search(r'<span class="pill running">running</span>( for \d+ \w+, now in task archive)?</dt>', text)
    # Once the task has ended, its last line says nothing of what goes on.
    known_facts(monkeypatch, Facts(dag_id="archive_orders", runs=(run.model_copy(update={"task": "verify"}),)))
    page.refresh()
    assert line not in page.user("viewer").get("/archiver/archives/orders").text


def test_a_job_goes_on_if_airflow_does_not_take_its_progress(caplog: pytest.LogCaptureFixture) -> None:
    progress_keeper(None, "r")("1 of 2 chunks")
    assert "the progress of run r is not shown" in caplog.text


class PushedXComs:
    """A task instance that keeps what is pushed."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

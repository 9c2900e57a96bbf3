"""Alerts of tasks that failed for good, at real receivers."""

import json
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise, command
from kafka_archiver.messages.advice import go_on, once, plan_anew
from kafka_archiver.messages.errors import (
    BadRecordError,
    ConfigError,
    IntegrityError,
    PermanentError,
    PolicyError,
    TransientError,
)
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.orchestration.alerts import callbacks, send
from kafka_archiver.orchestration.alerts import failed_run as failure_module
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.alerts.cause import CAUSE, leave_cause
from kafka_archiver.orchestration.alerts.reporting import Incident
from kafka_archiver.records.formats import resolve
from kafka_archiver.store import open_store
from kafka_archiver.values.intervals import Interval
from tests.dags.conftest import SECRET, AddConnection, MakeArchive, dag_of
from tests.support.receivers import MailServer, Webhook, text_of

pytestmark = pytest.mark.dags
HOUR = timedelta(hours=1)
START, END = datetime(2026, 11, 21, 5, tzinfo=UTC), datetime(2026, 11, 21, 6, tzinfo=UTC)
RUN = "20261121T050000Z"
LOG_URL = "http://airflow/dags/archive_orders/runs/r/tasks/verify?try_number=2"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as receiver:
        yield receiver


@pytest.fixture
def mail_server() -> Iterator[MailServer]:
    with MailServer() as receiver:
        yield receiver


class Noted:
    """Where the open incidents are noted, in the place of Airflow's variables."""

    def __init__(self) -> None:
        self.open: dict[str, Incident] = {}

    def read(self, archive: str) -> dict[str, Incident]:
        return dict(self.open)

    def write(self, archive: str, incidents: Mapping[str, Incident]) -> None:
        self.open = dict(incidents)


@pytest.fixture(autouse=True)
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    notes = Noted()
    monkeypatch.setattr(callbacks, "Incidents", lambda: notes)
    return notes


@pytest.fixture
def alerting(archive: MakeArchive, local_connections: None) -> Any:
    """Makes an archive with alerts whose store is in memory."""

    def make(*channels: str) -> Archive:
        archive_with_alerts = archive(f"alerts: {{on_failure: {json.dumps(channels)}}}\n")
        url = f"memory://{uuid.uuid4().hex}/lake"
        return archive_with_alerts.model_copy(
            update={"store": archive_with_alerts.store.model_copy(update={"url": url})}
        )

    return make


class Task:
    """A task instance, as much of it as the callbacks use."""

    dag_id, run_id, max_tries, log_url = "archive_orders", "scheduled__x", 3, LOG_URL

    def __init__(self, task_id: str = "verify", try_number: int = 2) -> None:
        self.task_id, self.try_number = task_id, try_number
        self.xcoms: dict[str, Any] = {}
        # What `plan` of the DAG run has found.
        self.work: dict[str, Any] | None = None

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value

    def xcom_pull(self, task_ids: str, key: str, map_indexes: int) -> Any:
        assert map_indexes == -1
        if (task_ids, key) == ("plan", "return_value"):
            return self.work
        assert task_ids == self.task_id
        return self.xcoms.get(key)


def failed(error: BaseException | None = None, task: Task | None = None) -> dict[str, Any]:
    """Return what Airflow hands to a failure callback in the task's own process."""
    run = SimpleNamespace(
        data_interval_start=START, data_interval_end=END, run_after=END, run_type="scheduled", conf={}
    )
    return {"ti": task or Task(), "dag_run": run, "exception": error}


def afterwards(context: dict[str, Any]) -> dict[str, Any]:
    """Return what it hands to a callback in the DAG processor."""
    return {name: value for name, value in context.items() if name != "exception"}


def plan_in(archive: Archive, number: int = 1, start: datetime = START) -> None:
    partition = PartitionPlan(
        topic="orders", topic_id="t", partition=0, start=100, end=250, log_start=0, log_end=250,
        ranges=((100, 250),),
    )  # fmt: skip
    Ledger(open_store(archive.store.url, {}), archive.archive).file_plan(
        Plan(
            archive=archive.archive, number=number, interval=Interval(start=start, end=start + HOUR),
            origin="scheduled", planned_at=END,
            cluster_id="c", group=archive.group, settings=resolve(archive.settings), policies={},
            partitions=(partition,),
        )
    )  # fmt: skip


def add_webhook(connection: AddConnection, conn_id: str, receiver: Webhook, **extra: Any) -> None:
    connection(conn_id, "http", extra, host=f"http://127.0.0.1:{receiver.port}/hooks/of-ours")


def add_mail(connection: AddConnection, conn_id: str, receiver: MailServer, **extra: Any) -> None:
    plain = {"disable_ssl": True, "disable_tls": True, "from_email": "airflow@example.com", **extra}
    connection(conn_id, "smtp", plain, host="127.0.0.1", port=receiver.port)


def test_a_webhook_gets_what_failed_which_interval_and_ranges_why_and_where_to_look(
    alerting: Any, connection: AddConnection, webhook: Webhook
) -> None:
    archive = alerting("ops")
    plan_in(archive)
    add_webhook(connection, "ops", webhook, **{"X-Token": "ours"})
    AlertCallbacks(archive).task_failed(failed(IntegrityError("2 objects are missing\nlake/a\nlake/b")))
    [document] = webhook.documents
    text = document.pop("text")
    assert document == {
        "archive": "orders",
        "kind": "failure",
        "state": "begins",
        "permanent": True,
        "closed_until": None,
        "next": ["correct the cause, then: airflow dags trigger archive_orders"],
        "guide": "docs/runbook/alerts.md#alert-a-run-failed",
        "dag_id": "archive_orders",
        "run_id": "scheduled__x",
        "task": "verify",
        "attempt": 2,
        "attempts": 4,
        "run": "20261121T050000Z",
        "interval_start": "2026-11-21T05:00:00Z",
        "interval_end": "2026-11-21T06:00:00Z",
        "planned": "150 offsets of 1 partitions: orders[0] [100, 250)",
        "cause": "2 objects are missing lake/a lake/b",
        "log_url": LOG_URL,
        "page_url": "http://localhost:8080/archiver/archives/orders",
    }
    assert "Archive orders: task verify failed, interval 2026-11-21 05:00 to 2026-11-21 06:00 UTC" in text
    assert all(part in text for part in (document["planned"], document["cause"], LOG_URL))
    assert webhook.paths == ["/hooks/of-ours"]
    assert webhook.headers[0]["X-Token"] == "ours"
    assert webhook.headers[0]["Content-Type"] == "application/json"


def test_a_mail_says_the_same(alerting: Any, connection: AddConnection, mail_server: MailServer) -> None:
    archive = alerting("ops_mail")
    plan_in(archive)
    add_mail(connection, "ops_mail", mail_server, to_email="on-call@example.com, second@example.com")
    AlertCallbacks(archive).task_failed(failed(PermanentError("PolicyError: 5 offsets <are> gone")))
    [(recipients, mail)] = mail_server.mails
    assert recipients == ["on-call@example.com", "second@example.com"]
    assert mail["From"] == "airflow@example.com"
    assert mail["Subject"].startswith("Archive orders: task verify failed, interval 2026-11-21 05:00")
    text = text_of(mail)
    assert "<p>PolicyError: 5 offsets &lt;are&gt; gone</p>" in text
    assert "orders[0] [100, 250)" in text
    assert LOG_URL in text


def test_what_failed_may_look_like_a_template(
    alerting: Any, connection: AddConnection, webhook: Webhook, mail_server: MailServer
) -> None:
    add_webhook(connection, "ops", webhook)
    add_mail(connection, "ops_mail", mail_server, to_email="on-call@example.com")
    AlertCallbacks(alerting("ops", "ops_mail")).task_failed(failed(ValueError("{{ var.value.secret }} {% raise %}")))
    assert webhook.documents[0]["cause"] == "value error: {{ var.value.secret }} {% raise %}"
    assert "{{ var.value.secret }} {% raise %}" in text_of(mail_server.mails[0][1])


def test_channels_that_are_down_hide_neither_the_others_nor_themselves(
    alerting: Any,
    connection: AddConnection,
    webhook: Webhook,
    mail_server: MailServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send, "HTTP_SECONDS", 0.2)
    with socket.socket() as free, Webhook(status=500) as broken, Webhook(status=None) as silent:
        free.bind(("127.0.0.1", 0))
        nobody = free.getsockname()[1]
        connection("refused", "http", host=f"http://127.0.0.1:{nobody}")
        connection("refused_mail", "smtp", {"from_email": "a@b.c", "to_email": "d@e.f"}, host="127.0.0.1", port=nobody)
        add_webhook(connection, "broken", broken)
        add_webhook(connection, "silent", silent)
        add_mail(connection, "to_nobody", mail_server)
        connection("kafka_by_mistake", "kafka")
        add_webhook(connection, "ops", webhook)
        add_mail(connection, "ops_mail", mail_server, to_email="on-call@example.com")
        names = ("refused", "refused_mail", "broken", "silent", "to_nobody", "kafka_by_mistake", "missing")
        AlertCallbacks(alerting(*names, "ops", "ops_mail")).task_failed(failed(ValueError("x")))
    assert len(webhook.documents) == len(mail_server.mails) == 1
    errors = [r.getMessage() for r in caplog.records if r.levelname == "ERROR" and r.name.startswith("kafka_archiver")]
    by_channel = {error.split(":")[0]: error for error in errors}
    assert set(by_channel) == {f"the alert could not be sent by connection {name}" for name in names}
    to_nobody, by_mistake, missing = (
        by_channel[f"the alert could not be sent by connection {name}"] for name in names[4:]
    )
    assert "to_email" in to_nobody
    assert "is of type 'kafka'; expected 'http' or 'smtp'" in by_mistake
    assert "airflow connections add missing --conn-type http" in missing


def test_a_webhook_that_redirects_took_nothing(
    alerting: Any, connection: AddConnection, caplog: pytest.LogCaptureFixture
) -> None:
    with Webhook(status=302) as moved:
        add_webhook(connection, "moved", moved)
        callbacks = AlertCallbacks(alerting("moved"))
        for _ in range(2):
            callbacks.task_failed(failed(ValueError("x")))
        # Nobody was told, so the second run tries again.
        assert len(moved.documents) == 2
    assert "HTTP 302: it redirects to the same host" in caplog.text


def test_no_log_repeats_what_makes_the_address_of_a_webhook_secret(
    alerting: Any, connection: AddConnection, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        connection("refused", "http", host=f"http://u:Geheim0@{place}/hooks/Geheim1 é?token=Geheim2 é")
        AlertCallbacks(alerting("refused")).task_failed(failed(ValueError("x")))
    [error] = [r.getMessage() for r in caplog.records if r.levelname == "ERROR" and "refused" in r.getMessage()]
    assert "Connection refused" in error
    printed = capfd.readouterr()
    assert "Geheim" not in caplog.text + printed.out + printed.err


def test_a_store_that_does_not_answer_does_not_hold_up_the_alert(
    alerting: Any, connection: AddConnection, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_webhook(connection, "ops", webhook)
    answer = threading.Event()

    def progress() -> None:
        answer.wait()
        raise TransientError("at last")

    ledger = SimpleNamespace(progress=progress, plan=lambda _: progress())
    monkeypatch.setattr(Context, "open", lambda *_: SimpleNamespace(ledger=ledger))
    monkeypatch.setattr(failure_module, "LEDGER_SECONDS", 0.2)
    try:
        AlertCallbacks(alerting("ops")).task_failed(failed(ValueError("x")))
    finally:
        answer.set()
    assert webhook.documents[0]["planned"] is None
    assert "Planned: unknown, because the ledger has no such plan or cannot be read" in webhook.documents[0]["text"]


def test_a_connection_that_is_missing_is_told_too(
    archive: MakeArchive, connection: AddConnection, webhook: Webhook
) -> None:
    # The very thing that failed: there is nothing to read the ledger with.
    add_webhook(connection, "ops", webhook)
    AlertCallbacks(archive("alerts: {on_failure: [ops]}\n")).task_failed(failed(ValueError("x"), Task("plan")))
    assert webhook.documents[0]["task"] == "plan"
    assert webhook.documents[0]["planned"] is None


def test_a_failure_is_told_once(alerting: Any, connection: AddConnection, webhook: Webhook) -> None:
    add_webhook(connection, "ops", webhook)
    alert, context = AlertCallbacks(alerting("ops")), failed(ValueError("x"))
    alert.task_failed(context)
    alert.run_failed(afterwards(context))
    assert [d["cause"] for d in webhook.documents] == ["value error: x"]
    # Cleared, tried again, killed this time: another cause is news.
    context["ti"].try_number += 1
    alert.run_failed(afterwards(context))
    assert [d["state"] for d in webhook.documents] == ["begins", "changes"]
    assert webhook.documents[1]["text"].startswith("Archive orders: task verify failed")
    assert ", now for another cause" in webhook.documents[1]["text"]


def test_a_task_whose_process_was_killed_is_told_when_its_run_has_failed(
    alerting: Any, connection: AddConnection, webhook: Webhook
) -> None:
    add_webhook(connection, "ops", webhook)
    alert, context = AlertCallbacks(alerting("ops")), afterwards(failed())
    # In the DAG processor nothing can be noted, so that the run's callback would tell it again.
    alert.task_failed(context)
    assert webhook.documents == []
    alert.run_failed(context)
    assert webhook.documents[0]["cause"].startswith("the task's process ended without reporting an error")
    assert webhook.documents[0]["task"] == "verify"


def test_a_run_that_failed_without_a_task_is_none_of_ours(alerting: Any) -> None:
    AlertCallbacks(alerting("ops")).run_failed({"run_id": "x", "reason": "task_failure"})


def test_an_alert_is_about_the_run_at_work_and_not_about_the_dag_run_that_came_to_it(
    alerting: Any, connection: AddConnection, webhook: Webhook, noted: Noted
) -> None:
    """The DAG run of six o'clock finishes that of four first, which is what failed."""
    archive = alerting("ops")
    plan_in(archive, 1, START - HOUR)
    plan_in(archive, 2)
    add_webhook(connection, "ops", webhook)
    context = failed(IntegrityError("x"), Task("archive"))
    context["ti"].work = {"runs": ["20261121T040000Z", "20261121T050000Z"], "archive": ["20261121T050000Z"]}
    AlertCallbacks(archive).task_failed(context)
    ledger = Ledger(open_store(archive.store.url, {}), archive.archive)
    assert ledger.put_progress(Progress(archive=archive.archive, settled=1), ledger.stored_progress())
    noted.open.clear()
    AlertCallbacks(archive).task_failed(context)
    first, second = webhook.documents
    assert (first["run"], first["interval_start"]) == ("20261121T040000Z", "2026-11-21T04:00:00Z")
    assert "task archive failed, interval 2026-11-21 04:00 to 2026-11-21 05:00 UTC" in first["text"]
    assert "DAG archive_orders, DAG run scheduled__x" in first["text"]
    assert (second["run"], second["interval_start"]) == ("20261121T050000Z", "2026-11-21T05:00:00Z")


def test_a_plan_that_failed_has_no_run_and_the_alert_has_the_command_of_its_cause(
    alerting: Any, connection: AddConnection, webhook: Webhook
) -> None:
    """A run by hand has the interval of the last run, which is settled and has nothing to do with it."""
    archive = alerting("ops")
    plan_in(archive)
    ledger = Ledger(open_store(archive.store.url, {}), archive.archive)
    assert ledger.put_progress(Progress(archive=archive.archive, settled=1), ledger.stored_progress())
    add_webhook(connection, "ops", webhook)
    record = once("orders", {"lost_offsets": "record_loss"})
    action = advise("One run stops at each of these: for one run ", record)
    for error in (
        PolicyError("5 offsets are gone.", "lost_offsets", actions=(record, command("kafka-topics --list"))),
        PolicyError("5 objects are gone.", advice=action.text, actions=action.actions),
        ConfigError("no connection `x`.", *advise(command("airflow connections add x"))),
        BadRecordError.without_records(
            "no.", *advise(record, ". Once that is fixed, ", go_on("orders", RUN), plan_anew("orders", RUN))
        ),
        # What others wrote is no step.
        ConfigError("no connection `airflow dags trigger archive_orders --conf '{}'`"),
    ):
        AlertCallbacks(archive).task_failed(failed(error, Task("plan")))
    first, second, third, fourth, fifth = webhook.documents
    assert (first["run"], first["planned"], first["interval_start"]) == (None, None, "2026-11-21T05:00:00Z")
    assert "\nNothing is planned yet\n" in first["text"]
    assert first["next"] == [record.command, "kafka-topics --list"]
    assert second["next"] == [record.command]
    assert third["next"] == ["airflow connections add x", "then: airflow dags trigger archive_orders"]
    assert fifth["next"] == ["correct the cause, then: airflow dags trigger archive_orders"]
    assert fourth["next"] == [
        record.command,
        "once that is fixed: airflow dags trigger archive_orders",
        f"with today's settings: airflow archive rebuild orders --run {RUN}",
    ]
    assert fourth["cause"] == "no."


def test_an_audit_s_alert_is_about_no_interval(alerting: Any, connection: AddConnection, webhook: Webhook) -> None:
    archive = alerting("ops")
    plan_in(archive)
    add_webhook(connection, "ops", webhook)
    AlertCallbacks(archive, archives=False).task_failed(failed(IntegrityError("1 error"), Task("audit")))
    [document] = webhook.documents
    assert [document[name] for name in ("run", "interval_start", "interval_end", "planned")] == [None] * 4
    assert document["kind"] == "check"
    assert document["text"].startswith("Archive orders: task audit failed: 1 error\n")


@pytest.mark.parametrize(
    "conf",
    [{"rebuild": {"run": "20261120T050000Z"}}, {"repair": ["20261120T050000Z"]}, {"dead_letters": {"all": True}}],
)
def test_a_rebuild_that_cannot_be_planned_is_about_no_interval_of_the_schedule(
    alerting: Any, connection: AddConnection, webhook: Webhook, conf: dict[str, Any]
) -> None:
    archive = alerting("ops")
    plan_in(archive)
    add_webhook(connection, "ops", webhook)
    context = failed(PermanentError("cannot be rebuilt"), Task("plan"))
    context["dag_run"].conf = conf
    AlertCallbacks(archive).task_failed(context)
    assert webhook.documents[0]["planned"] is webhook.documents[0]["interval_start"] is None


def test_the_cause_is_left_where_commands_and_people_look(
    alerting: Any, connection: AddConnection, webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow has opened a group of lines by then, which its UI folds away."""
    add_webhook(connection, "ops", webhook)
    context = failed(IntegrityError(f"2 objects are missing\nlake/a {SECRET}"))
    for callback in dag_of(alerting("ops")).get_task("verify").on_failure_callback:
        callback(context)
    cause = "2 objects are missing lake/a ***"
    assert [record.getMessage() for record in caplog.records][-2:] == ["::endgroup::", cause]
    assert caplog.records[-1].levelname == "ERROR"
    assert context["ti"].xcoms[CAUSE]["cause"] == cause
    caplog.clear()
    leave_cause(afterwards(context))
    assert caplog.records == []

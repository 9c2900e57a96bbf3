"""Alerts about the state of an archive: one when something begins, one when it is over."""

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kafka_archiver.config import Archive
from kafka_archiver.messages.actions import Action, advise, to_dicts
from kafka_archiver.messages.advice import once, repair
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PolicyError, TransientError, shape
from kafka_archiver.orchestration.alerts import callbacks, deadline, reporting
from kafka_archiver.orchestration.alerts.callbacks import AlertCallbacks
from kafka_archiver.orchestration.alerts.message import Message
from kafka_archiver.orchestration.alerts.reporting import Incident, Incidents, state_to_report
from kafka_archiver.orchestration.alerts.send import check_receiver
from kafka_archiver.orchestration.dag_run.figures import Figures
from kafka_archiver.orchestration.dag_run.xcoms import AUDITED, DAMAGE_LEFT, FIGURES
from kafka_archiver.store.s3_errors import Bucket, explain
from tests.dags.conftest import MINIMAL, AddConnection, MakeArchive
from tests.dags.test_callbacks import Noted, Task, failed, noted
from tests.support.receivers import Webhook

__all__ = ["noted"]
pytestmark = pytest.mark.dags
RUN = "20261121T050000Z"
GOLDEN = Path(__file__).parent / "golden" / "alerts.txt"
NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


class SentAlerts:
    """The messages that an archive's callbacks have sent, with the key of `alerts` that has their receivers."""

    def __init__(self, archive: Archive) -> None:
        self.messages: list[Message] = []
        self.receivers: list[Any] = []
        self.alerts = AlertCallbacks(archive)
        self.audits = AlertCallbacks(archive, archives=False)

        self.up = True

    def send(self, receivers: Any, key: str, message: Message, seconds: float) -> bool:
        """Send as `send_all` does while the receivers are up, or down."""
        if self.up:
            self.receivers += [(receiver, key) for receiver in receivers]
            self.messages.append(message)
        return self.up

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(message.kind, message.state) for message in self.messages]


@pytest.fixture
def tell(archive: MakeArchive, noted: Noted, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(more: str = "on_failure: [ops]") -> SentAlerts:
        sent = SentAlerts(archive(f"alerts: {{{more}}}\n"))
        monkeypatch.setattr(reporting, "send_all", sent.send)
        return sent

    return make


def fails(error: Exception | None = None, kind: str = "scheduled", **conf: Any) -> dict[str, Any]:
    context = failed(error or IntegrityError("5 offsets of run 20261121T050000Z are gone"), Task("verify"))
    context["dag_run"].run_type, context["dag_run"].conf = kind, conf
    return context


def closes(kind: str = "scheduled", conf: Any = None, **figures: Any) -> dict[str, Any]:
    """The context of a `close_hours` that succeeded with these figures."""
    task = Task("close_hours")
    task.xcoms[FIGURES] = Figures(**{"runs": (RUN,), **figures}).model_dump(mode="json")
    return {"ti": task, "dag_run": SimpleNamespace(run_type=kind, conf=conf or {})}


def test_a_failure_that_repeats_is_told_once_and_its_end_once(tell: Any) -> None:
    sent = tell("on_failure: [ops], on_recovery: [calm]")
    for count in (5, 17):
        sent.alerts.task_failed(fails(IntegrityError(f"{count} offsets of run 20261121T0{count % 10}0000Z are gone")))
    sent.alerts.closed(closes(records=7))
    sent.alerts.closed(closes(records=8))
    assert sent.states == [("failure", "begins"), ("failure", "over")]
    assert sent.receivers == [("ops", "on_failure"), ("calm", "on_recovery")]
    assert "7 records" in sent.messages[1].text
    # It begins anew.
    sent.alerts.task_failed(fails())
    assert sent.states[2:] == [("failure", "begins")]


def test_another_cause_is_news(tell: Any) -> None:
    sent = tell()
    sent.alerts.task_failed(fails())
    sent.alerts.task_failed(fails(TransientError("no answer from the store")))
    assert sent.states == [("failure", "begins"), ("failure", "changes")]


def test_backfills_and_the_schedule_do_not_end_each_other_s_incidents(tell: Any) -> None:
    sent = tell()
    sent.alerts.task_failed(fails(kind="backfill"))
    sent.alerts.closed(closes())
    sent.alerts.task_failed(fails())
    sent.alerts.closed(closes("backfill"))
    assert sent.states == [("backfill", "begins"), ("failure", "begins"), ("backfill", "over")]


def test_what_a_person_asked_for_is_told_each_time_and_ends_nothing(tell: Any) -> None:
    sent = tell()
    sent.alerts.task_failed(fails())
    for _ in range(2):
        sent.alerts.task_failed(fails(kind="manual", repair=[RUN]))
    sent.alerts.closed(closes("manual", {"repair": [RUN]}))
    assert sent.states == [("failure", "begins"), ("asked", "event"), ("asked", "event")]


def test_a_repair_ends_the_incident_of_the_audit_once_when_nothing_is_left(tell: Any) -> None:
    sent = tell()
    sent.audits.task_failed(audits("damaged"))
    for left in (None, 1, 0, 0):
        context = closes("manual", {"repair": [RUN]})
        context["ti"].xcoms[DAMAGE_LEFT] = left
        sent.alerts.closed(context)
    sent.audits.audited(audits())
    assert sent.states == [("audit", "begins"), ("audit", "over")]
    assert sent.messages[1].title == "Archive orders: the damage that the audit found is repaired"
    assert f"Run {RUN}" in sent.messages[1].text


def test_an_alert_that_no_receiver_took_is_sent_by_the_next_run(tell: Any) -> None:
    sent = tell("on_failure: [ops], on_loss: [ops], max_age: 2h")
    sent.up = False
    sent.alerts.task_failed(fails())
    sent.alerts.closed(closes("manual", lost=5))
    sent.alerts.late(NOW - timedelta(hours=3), NOW, "http://airflow/log")
    sent.up = True
    sent.alerts.task_failed(fails())
    sent.alerts.late(NOW - timedelta(hours=3), NOW, "http://airflow/log")
    assert sent.states == [("failure", "begins"), ("late_hour", "begins")]
    # A loss has no second run that finds it: its alert is kept. And the end of the failure is told again, too.
    sent.up = False
    sent.alerts.closed(closes())
    sent.up = True
    sent.alerts.closed(closes())
    sent.alerts.closed(closes())
    assert sent.states[2:] == [("failure", "over"), ("loss", "event")]
    assert "5 offsets were recorded as lost" in sent.messages[-1].title


def test_a_retry_is_told_if_somebody_wants_it_and_only_the_first(tell: Any) -> None:
    quiet, sent = tell(), tell("on_failure: [ops], on_retry: [chat]")
    quiet.alerts.task_retried(fails())
    for attempt in (1, 2):
        context = fails()
        context["ti"].try_number = attempt
        sent.alerts.task_retried(context)
    assert (quiet.states, sent.states) == ([], [("retry", "event")])
    assert sent.receivers == [("chat", "on_retry")]
    assert "Airflow tries it again" in sent.messages[0].text


def test_a_loss_is_told_once_also_if_its_task_is_cleared(tell: Any) -> None:
    sent = tell()
    for lost in (5, 5, 0, 7):
        sent.alerts.closed(closes(lost=lost))
    assert [message.fields["lost"] for message in sent.messages] == [5, 7]
    assert sent.messages[0].title == "Archive orders: 5 offsets were recorded as lost for ever"


def test_hours_are_late_and_then_no_longer(tell: Any) -> None:
    sent = tell("on_failure: [ops], max_age: 2h")
    for age in (1, 3, 4, 1):
        sent.alerts.late(NOW - timedelta(hours=age), NOW, "")
    sent.alerts.late(None, NOW, "")
    assert sent.states == [("late_hour", "begins"), ("late_hour", "over")]


def test_too_many_records_wait_and_then_no_longer(tell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lags = iter((11, 12, 10))
    monkeypatch.setattr(callbacks, "open_archive", lambda _: None)
    monkeypatch.setattr("kafka_archiver.state.status.condition.observe", lambda _: None)
    monkeypatch.setattr("kafka_archiver.state.status.condition.lag_of", lambda *_: next(lags))
    sent = tell("on_failure: [ops], max_lag_records: 10")
    for _ in range(3):
        sent.alerts.closed(closes())
    assert sent.states == [("lag", "begins"), ("lag", "over")]


def test_an_unknown_lag_changes_nothing(tell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise TransientError("no answer from the brokers")

    monkeypatch.setattr(callbacks, "open_archive", fail)
    sent = tell("on_failure: [ops], max_lag_records: 10")
    sent.alerts.closed(closes())
    assert sent.states == []


REPAIR = repair("orders", deep=True)
CHOOSE = once("orders", {"lost_offsets": "record_loss"})


def damage_note(key: str, cause: str, action: Action) -> dict[str, Any] | None:
    return {"key": key, "cause": cause, "actions": to_dicts([action])} if key else None


def audits(damage: str = "", stops: str = "", live: bool = True) -> dict[str, Any]:
    error = IntegrityError("orders is damaged") if damage else PolicyError("the next run stops") if stops else None
    context = failed(error, Task("audit")) if error else {"ti": Task("audit"), "dag_run": SimpleNamespace(conf={})}
    context["ti"].xcoms[AUDITED] = {
        "verdict": "damaged" if damage else "clean",
        "report": "_ledger/orders/audit.json",
        "deep": True,
        "live": live,
        "damage": {"key": damage, "cause": f"(1) {damage} is missing", "actions": to_dicts([REPAIR])}
        if damage
        else None,
        "stops": {"key": stops, "cause": f"(1) {stops} offsets are gone", "actions": to_dicts([CHOOSE])}
        if stops
        else None,
    }
    return context


def test_damage_is_told_once_again_if_it_grows_and_when_it_is_mended(tell: Any) -> None:
    sent = tell("on_failure: [ops], on_audit: [auditors]")
    for damage in ("one", "one", "two"):
        sent.audits.task_failed(audits(damage))
    sent.audits.audited(audits())
    sent.audits.audited(audits())
    assert sent.states == [("audit", "begins"), ("audit", "changes"), ("audit", "over")]
    assert {receiver for receiver, _ in sent.receivers} == {"auditors"}
    assert "airflow archive repair orders --deep" in sent.messages[0].text


def test_what_stops_the_next_run_is_no_damage_and_ends_apart_from_it(tell: Any) -> None:
    sent = tell()
    sent.audits.task_failed(audits("one", "5"))
    # Repaired; the finding at the brokers is still there, and an audit that does not ask them knows nothing of it.
    sent.audits.task_failed(audits(stops="5"))
    sent.audits.audited(audits(live=False))
    assert sent.states == [("audit", "begins"), ("stop", "begins"), ("audit", "over")]
    sent.audits.audited(audits())
    assert sent.states[3:] == [("stop", "over")]
    damaged, stopped = sent.messages[:2]
    assert (damaged.cause, damaged.do) == ("(1) one is missing", (REPAIR,))
    assert (stopped.cause, stopped.do) == ("(1) 5 offsets are gone", (CHOOSE,))
    assert stopped.runbook == "docs/runbook/alerts.md#alert-the-next-run-will-stop"


def test_an_audit_that_could_not_run_is_no_damage(tell: Any) -> None:
    sent = tell()
    sent.audits.task_failed(failed(TransientError("no answer from the store"), Task("audit")))
    sent.audits.audited(audits())
    assert sent.states == [("check", "begins"), ("check", "over")]


@pytest.mark.parametrize(
    ("before", "key", "state"),
    [(None, None, None), (None, "a", "begins"), ("a", "a", None), ("a", "b", "changes"), ("a", None, "over")],
)
def test_when_there_is_news(before: str | None, key: str | None, state: str | None) -> None:
    assert state_to_report(Incident(before, "", "") if before else None, key) == state


def test_the_shape_of_a_cause_has_no_figures() -> None:
    assert shape("5 offsets of run 20261121T050000Z") == shape("17 offsets of run 20261121T060000Z")
    assert shape("5 offsets are gone") != shape("5 objects are gone")


def test_the_same_answer_of_the_store_is_told_once_and_its_end_names_no_command(tell: Any) -> None:
    sent = tell()
    for request in ("18EABF0C11D2E3A4", "18eab", "TX/9Q+z="):
        answer = {
            "Error": {"Code": "NoSuchBucket"},
            "ResponseMetadata": {"HTTPStatusCode": 404, "RequestId": request},
        }
        error = ClientError(answer, "GetObject")  # type: ignore[arg-type] # as much as it uses
        sent.alerts.task_failed(fails(explain(error, Bucket("nobucket", "http://s3"), "get_object", "k")))
    choice = once("orders", {"moved_group": "new_generation"})
    how = advise("To go on: for one run ", choice, ", or not")
    sent.alerts.task_failed(fails(PolicyError("the group has moved", advice=how.text, actions=how.actions)))
    sent.alerts.closed(closes())
    assert sent.states == [("failure", "begins"), ("failure", "changes"), ("failure", "over")]
    since = sent.messages[2].fields["since"]
    assert sent.messages[2].bad[-1] == f"Failed since {since}, last because of: the group has moved"


def test_a_variable_that_cannot_be_read_or_written_hides_no_alert(
    connection: AddConnection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow.sdk.Variable.get", lambda *_, **__: {"failure": {"odd": 1}})
    monkeypatch.setattr("airflow.sdk.Variable.set", lambda *_, **__: 1 / 0)
    assert Incidents().read("orders") == {}
    Incidents().write("orders", {"failure": Incident("k", "s", "c")})
    assert [r.levelname for r in caplog.records if "incidents of archive orders" in r.getMessage()] == ["WARNING"] * 2


def test_the_texts_are_the_golden_ones(tell: Any, archive: MakeArchive) -> None:
    sent = tell("on_failure: [ops], on_retry: [ops], max_age: 2h")
    sent.alerts.task_failed(fails())
    sent.alerts.task_failed(fails(TransientError("no answer from the store")))
    five = datetime(2026, 11, 21, 5, tzinfo=UTC)
    hours = tuple(five + timedelta(hours=n) for n in (0, 1, 4))
    loss = {"lost": 5, "lost_by": {"orders[0]": 2, "orders[1]": 3}, "incomplete": hours, "unsure_until": NOW}
    sent.alerts.closed(closes(records=7, objects=1, bytes=10, hours_closed=1, **loss))
    sent.alerts.late(NOW - timedelta(hours=3, minutes=30), NOW, "http://airflow/log")
    sent.alerts.late(NOW - timedelta(minutes=30), NOW, "http://airflow/log")
    sent.alerts.task_failed(fails(kind="backfill"))
    sent.alerts.task_failed(fails(kind="manual", repair=[RUN]))
    retried = fails()
    retried["ti"].try_number = 1
    sent.alerts.task_retried(retried)
    sent.audits.task_failed(audits("one", "5"))
    sent.audits.audited(audits())
    sent.messages.append(callbacks.state_texts.lag("orders", "begins", 1_000_000, 5, "http://airflow/log"))
    sent.messages.append(callbacks.state_texts.lag("orders", "over", 4, 5, "http://airflow/log"))
    since = [message.fields["since"] for message in sent.messages if "since" in message.fields]
    texts = "\n\n".join(message.text for message in sent.messages) + "\n"
    for moment in since:
        texts = texts.replace(moment, "SINCE")
    assert texts == GOLDEN.read_text()


def test_a_notifier_by_its_class_gets_the_alert_in_its_arguments(
    archive: MakeArchive, connection: AddConnection
) -> None:
    """A real notifier of a provider, at a real receiver. Braces in the error are no template."""
    with Webhook() as webhook:
        connection("raw", "http", host=f"http://127.0.0.1:{webhook.port}")
        options = {"http_conn_id": "raw", "json": "not used", "data": '{"say": "{title}"}'}
        del options["json"]
        receiver = {"notifier": "airflow.providers.http.notifications.http.HttpNotifier", "options": options}
        alerting = archive(f"alerts: {{on_failure: [raw, {json.dumps(receiver)}]}}\n")
        AlertCallbacks(alerting).task_failed(fails(ValueError("{{ 1/0 }}")))
    first, second = sorted(webhook.documents, key=len, reverse=True)
    assert first["cause"] == "value error: {{ 1/0 }}"
    assert second == {"say": first["text"].splitlines()[0]}


@pytest.mark.parametrize(
    ("kind", "extra", "options", "message"),
    [
        ("slackwebhook", {}, {}, "install apache-airflow-providers-slack where"),
        (
            "slack",
            {},
            {},
            "of type 'slack' needs channel in its extra, or in the YAML",
        ),
        ("slack", {"channel": "#ops"}, {}, "install apache-airflow-providers-slack where"),
        ("apprise", {}, {}, "install apache-airflow-providers-apprise where"),
        ("discord", {}, {}, "install apache-airflow-providers-discord where"),
        ("aws", {}, {}, "of type 'aws' needs target_arn in its extra"),
    ],
)
def test_what_is_not_installed_or_incomplete_is_named_and_stops_nobody(
    archive: MakeArchive,
    connection: AddConnection,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    extra: dict[str, Any],
    options: dict[str, Any],
    message: str,
) -> None:
    connection("x", kind, extra)
    with Webhook() as webhook:
        connection("raw", "http", host=f"http://127.0.0.1:{webhook.port}")
        receiver = json.dumps({"connection": "x", "options": options})
        alerting = archive(f"alerts: {{on_failure: [{receiver}, raw]}}\n")
        AlertCallbacks(alerting).task_failed(fails())
        with pytest.raises(ConfigError) as failure:
            check_receiver(alerting.alerts.on_failure[0], "on_failure")
    assert len(webhook.documents) == 1
    [error] = [r.getMessage() for r in caplog.records if "could not be sent by connection x" in r.getMessage()]
    assert message in error
    assert message in str(failure.value)


def test_sns_gets_subject_and_message_of_amazon_s_own_notifier(
    archive: MakeArchive, connection: AddConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "airflow.providers.amazon.aws.hooks.sns.SnsHook.publish_to_target",
        lambda _, **arguments: published.append(arguments),
    )
    connection("cloud", "aws", {"region_name": "eu-west-1"})
    receiver = json.dumps({"connection": "cloud", "options": {"target_arn": "arn:aws:sns:eu-west-1:1:ops"}})
    AlertCallbacks(archive(f"alerts: {{on_failure: [{receiver}]}}\n")).task_failed(fails())
    [message] = published
    assert message["target_arn"] == "arn:aws:sns:eu-west-1:1:ops"
    assert message["subject"].startswith("Archive orders: task verify failed")
    assert "airflow dags trigger archive_orders" in message["message"]


@pytest.mark.parametrize("path", ["kafka_archiver.messages.errors.ConfigError", "nowhere.Notifier", "json.nothing"])
def test_what_is_no_notifier_is_refused_by_the_doctor(archive: MakeArchive, path: str) -> None:
    alerting = archive(f"alerts: {{on_failure: [{{notifier: {path}}}]}}\n")
    with pytest.raises(ConfigError, match=path.replace(".", r"\.")):
        check_receiver(alerting.alerts.on_failure[0], "on_failure")


def test_a_deadline_that_is_missed_looks_at_the_ledger(
    archives: Path, local_connections: None, noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's triggerer calls it so."""
    messages: list[Message] = []
    monkeypatch.setattr(reporting, "send_all", lambda _, __, message, ___: not messages.append(message))
    until = datetime.now(UTC) - timedelta(hours=4)
    progress = SimpleNamespace(closed_until=until)
    monkeypatch.setattr(deadline, "open_ledger", lambda _: SimpleNamespace(progress=lambda: progress))
    (archives / "orders.yaml").write_text(MINIMAL.format(name="orders") + "alerts: {on_failure: [ops], max_age: 3h}\n")
    start = {"data_interval_start": f"{until:%Y-%m-%dT%H:%M:%SZ}"}
    run = {"dag_run": {"dag_id": "archive_orders", "dag_run_id": "scheduled__x", **start}, "deadline": {}}
    for archive in ("orders", "orders", "gone"):
        asyncio.run(deadline.missed(archive, run))
    noted.open.clear()
    asyncio.run(deadline.missed("orders", {"dag_run": {**run["dag_run"], "run_type": "backfill"}}))
    [message] = messages
    assert (message.kind, message.state) == ("late_hour", "begins")
    assert message.link.endswith("/dags/archive_orders/runs/scheduled__x")
    assert f"{until:%Y-%m-%d %H:%M}" in message.title
    # A new archive whose first run is not done.
    noted.open.clear()
    progress.closed_until = None
    asyncio.run(deadline.missed("orders", run))
    assert messages[1].title == "Archive orders: its first hour is late"
    assert messages[1].bad == ("No hour is closed yet; alerts.max_age is 3 h",)


def test_a_mail_server_that_does_not_answer_holds_up_nobody(
    archive: MakeArchive,
    connection: AddConnection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Airflow's mail hook tries five times for half a minute; its DAG processor kills a callback after 50 seconds."""
    monkeypatch.setattr(callbacks, "IN_DAG_PROCESSOR", 0.5)
    with Webhook() as webhook, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        mail = {"from_email": "a@b.example", "to_email": "c@d.example", "disable_ssl": True, "disable_tls": True}
        connection("mail", "smtp", mail, host="127.0.0.1", port=silent.getsockname()[1])
        connection("raw", "http", host=f"http://127.0.0.1:{webhook.port}")
        context = {name: value for name, value in fails().items() if name != "exception"}
        AlertCallbacks(archive("alerts: {on_failure: [mail, raw]}\n")).run_failed(context)
        assert len(webhook.documents) == 1
    log_lines = [r.getMessage() for r in caplog.records if "not sent by connection mail within" in r.getMessage()]
    assert len(log_lines) == 1

"""Archives under Airflow's real scheduler, with the real broker, S3 server and Spark."""

import re
import shlex
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_archiver.audit.inspection import audit
from kafka_archiver.config import parse_archive
from kafka_archiver.orchestration.dag_run.figures import COUNTERS
from kafka_archiver.store import open_store
from scripts.stack.kafka import Kafka
from scripts.stack.paths import ROOT
from scripts.stack.rest import address
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow, spans
from tests.support.receivers import MailServer, Otlp, Webhook, text_of
from tests.support.schedules import quiet_hours
from tests.support.topics import HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]
TASKS = ("plan", "archive", "verify", "commit", "close_hours")


@pytest.fixture
def name(airflow: Airflow) -> Iterator[str]:
    """A name for the test's archive, which is gone afterwards."""
    name = f"x{uuid.uuid4().hex[:8]}"
    yield name
    if (airflow.archives / f"{name}.yaml").exists():
        airflow.remove_archive(name)


def this_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def records(moment: datetime, hours: int, each: int) -> Iterator[Record]:
    """`each` records in each of the `hours` before `moment`, on two partitions."""
    first = int(moment.timestamp() * 1000) - hours * HOUR
    for number in range(hours * each):
        yield Record(number % 2, first + number * HOUR // each, b'{"n": %d}' % number)


def yaml(topic: str, name: str, more: str = "", source: str = "", bucket: str = "archive") -> str:
    return f"source: {{topics: [{topic}]{source}}}\nstore: {{url: 's3://{bucket}/{name}', chunk_records: 400}}\n{more}"


def find_job(name: str) -> psutil.Process:
    """The spark-submit of an archive."""

    def find() -> psutil.Process | None:
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if "org.apache.spark.deploy.SparkSubmit" in line and f"archive_{name}" in line:
                return process
        return None

    job_process = until(find, seconds=120, every=0.2)
    assert job_process is not None
    return job_process


@pytest.fixture(scope="module")
def hook() -> Iterator[Webhook]:
    """Gets the alerts of the archive below."""
    with Webhook() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def told_by_scheduler(airflow: Airflow, kafka: Kafka, s3: S3, hook: Webhook) -> Iterator[dict[str, Any]]:
    """A scheduled run, whose job is killed once, and two backfill runs that Airflow is asked for meanwhile."""
    (schedule, last), moment = quiet_hours(), this_hour()
    name = f"x{uuid.uuid4().hex[:8]}"
    topic = new_topic(kafka.bootstrap_servers, 2)
    produce(kafka.bootstrap_servers, topic, records(moment, hours=4, each=500))
    airflow.add_connection(f"hook_{name}", "http", host=f"http://127.0.0.1:{hook.port}")
    # When a run is queued, the last complete hour has ended an hour ago: its deadline is five seconds later.
    alerts = f"alerts: {{on_retry: [hook_{name}], on_late_hour: [hook_{name}], max_age: 3605s}}\n"
    dag = airflow.add_archive(name, yaml(topic, name, f"schedule: {schedule}\n{alerts}"))
    airflow.pause(dag, False)
    until(lambda: any(t.task == "plan" and t.state == "success" for t in airflow.tasks(dag)), seconds=120, every=0.5)
    since, until_ = (f"{last - timedelta(hours=h):%Y-%m-%dT%H:%M}" for h in (4, 3))
    backfill = airflow.start_command("dags", "backfill", dag, "-s", since, "-e", until_, "--max-active-runs", "2")
    # As the kernel does when memory runs out.
    find_job(name).kill()
    states = airflow.wait_for_runs(dag, 3, seconds=400)
    output, _ = backfill.communicate(timeout=60)
    assert backfill.returncode == 0, output
    runs = {run["dag_run_id"]: run["run_type"] for run in airflow.runs(dag)}
    yield {
        "name": name,
        "now": moment,
        "topic": topic,
        "dag": dag,
        "states": states,
        "tasks": airflow.tasks(dag),
        "scheduled": next(run for run, kind in runs.items() if kind == "scheduled"),
        "attempts": {t.task: t.attempt for t in airflow.tasks(dag) if runs[t.run_id] == "scheduled"},
        "backfills": sorted(run for run, kind in runs.items() if kind == "backfill"),
    }
    airflow.remove_archive(name)


def test_all_runs_succeed(told_by_scheduler: dict[str, Any]) -> None:
    assert len(told_by_scheduler["backfills"]) == 2
    assert set(told_by_scheduler["states"].values()) == {"success"}


def test_a_scheduled_run_and_two_backfill_runs_never_overlap(
    airflow: Airflow, told_by_scheduler: dict[str, Any]
) -> None:
    tasks = told_by_scheduler["tasks"]
    ordered = sorted(spans(tasks).values())
    assert len(ordered) == 3
    for (_, end), (begin, _) in pairwise(ordered):
        assert end <= begin
    # They would have, had nobody waited.
    assert min(t.start for t in tasks if t.run_id in told_by_scheduler["backfills"] and t.start) < ordered[-1][0]
    plans = [t for t in tasks if t.task == "plan" and t.run_id in told_by_scheduler["backfills"]]
    # Airflow may have counted a rescheduled attempt as another one.
    logs = [airflow.log(told_by_scheduler["dag"], t.run_id, t.task, t.attempt) for t in plans]
    assert any("waiting until 1 other run(s) of this archive have closed their hours" in log for log in logs)


def test_a_killed_job_is_tried_again(airflow: Airflow, told_by_scheduler: dict[str, Any]) -> None:
    dag, run = told_by_scheduler["dag"], told_by_scheduler["scheduled"]
    assert told_by_scheduler["attempts"] == dict.fromkeys(TASKS, 1) | {"archive": 2}
    assert airflow.last_line(dag, run, "archive", attempt=1).startswith("spark-submit was killed by signal 9")


def test_a_retry_and_a_missed_deadline_are_told_and_the_end_of_the_delay(
    hook: Webhook, told_by_scheduler: dict[str, Any]
) -> None:
    """The deadline by Airflow's triggerer, the others by the tasks."""
    [retry] = [d for d in hook.documents if d["kind"] == "retry"]
    late, *later = [d for d in hook.documents if d["kind"] == "late_hour"]
    assert len(hook.documents) == 2 + len(later)
    # Near the full hour, the last closed hour is older than the limit also when the run is done: it is late again.
    states = ["begins", *(d["state"] for d in later)]
    assert (retry["state"], late["state"]) == ("event", "begins")
    assert states == [("begins", "over")[number % 2] for number in range(len(states))]
    assert retry["cause"].startswith("spark-submit was killed by signal 9")
    assert (retry["task"], retry["run_id"]) == ("archive", told_by_scheduler["scheduled"])
    assert "No hour is closed yet; alerts.max_age is" in late["text"]
    assert f"/dags/{told_by_scheduler['dag']}/runs/" in late["log_url"]


def test_a_run_without_offsets_has_nothing_to_archive_or_to_verify(told_by_scheduler: dict[str, Any]) -> None:
    for run in told_by_scheduler["backfills"]:
        states = {t.task: t.state for t in told_by_scheduler["tasks"] if t.run_id == run}
        assert states == dict.fromkeys(TASKS, "success") | dict.fromkeys(("archive", "verify", "commit"), "skipped")


def test_the_logs_say_what_a_person_wants_to_know(airflow: Airflow, told_by_scheduler: dict[str, Any]) -> None:
    dag, run, topic = told_by_scheduler["dag"], told_by_scheduler["scheduled"], told_by_scheduler["topic"]
    logs = {task: airflow.log(dag, run, task, attempt) for task, attempt in told_by_scheduler["attempts"].items()}
    assert f"2,000 offsets of 2 partitions: {topic}[0] [0, 1000), {topic}[1] [0, 1000)" in logs["plan"]
    assert "chunk 6 of 6" in logs["archive"]
    assert "2,000 records in" in logs["archive"]
    assert "each there with its checksum" in logs["verify"]
    assert f"{topic}[0] none → 1000" in logs["commit"]
    assert "4 hours became complete" in logs["close_hours"] or "is complete" in logs["close_hours"]
    [note] = [r["note"] for r in airflow.runs(dag) if r["dag_run_id"] == run]
    assert re.match(
        r"2,000 records in 12 objects \([\d.]+ kB\); \d+ hours became complete, hours are closed until ", note
    ), note


def test_each_closed_hour_is_announced_once_as_an_asset_event(
    airflow: Airflow, told_by_scheduler: dict[str, Any]
) -> None:
    name = told_by_scheduler["name"]
    events = [e for e in airflow.asset_events(told_by_scheduler["dag"]) if e["extra"].get("rows")]
    assert {e["name"] for e in events} == {f"archive_{name}_hours"}
    assert {e["uri"] for e in events} == {f"s3://archive/{name}/_ledger/{name}/hours"}
    hours = sorted(e["extra"]["hour"] for e in events)
    assert hours == [f"{told_by_scheduler['now'] - timedelta(hours=h):%Y-%m-%dT%H:00:00Z}" for h in (4, 3, 2, 1)]
    assert {(e["extra"]["status"], e["extra"]["rows"]) for e in events} == {("complete", 500)}


def test_airflows_opentelemetry_has_the_figures_of_the_run(otlp: Otlp, told_by_scheduler: dict[str, Any]) -> None:
    name = told_by_scheduler["name"]
    until(lambda: otlp.counted["airflow.kafka_archiver.records", name])
    counters = {counter: otlp.counted[f"airflow.kafka_archiver.{counter}", name] for counter in COUNTERS}
    known = {"records": 2000, "objects": 12, "filtered": 0, "dead_letters": 0, "lost": 0}
    assert known.items() <= counters.items()
    assert counters["bytes"] > 1000
    assert counters["hours_closed"] >= 4
    assert otlp.counted[f"airflow.kafka_archiver.{name}.records", None] == 2000


def test_a_deleted_object_is_written_again_when_its_task_is_cleared_as_the_docs_say(
    airflow: Airflow, s3: S3, told_by_scheduler: dict[str, Any]
) -> None:
    dag, run = told_by_scheduler["dag"], told_by_scheduler["scheduled"]
    archive = parse_archive((airflow.archives / f"{told_by_scheduler['name']}.yaml").read_text(), "")
    store = open_store(archive.store.url, s3.options())
    [start] = [r["data_interval_start"] for r in airflow.runs(dag) if r["dag_run_id"] == run]
    before = {s.key: store.get(s.key) for s in store.list("") if s.key.endswith(".jsonl.gz")}
    store.delete(max(before))
    [command] = re.findall(r"`airflow (tasks clear .*)`", (ROOT / "docs" / "runbook" / "messages.md").read_text())
    airflow.command(*shlex.split(command.replace("archive_orders", dag).replace("2026-11-21T05:00", start)))
    again = told_by_scheduler["attempts"]["archive"] + 1
    until(lambda: {t.task: t.attempt for t in airflow.tasks(dag, run)}["archive"] == again)
    assert airflow.wait_for_runs(dag, 3)[run] == "success"
    assert {key: store.get(key) for key in before} == before
    assert audit(archive, store, datetime.now(UTC), deep=True).findings == ()


def test_a_failure_for_good_is_told_once_and_blocks_nobody(airflow: Airflow, kafka: Kafka, name: str) -> None:
    topic = f"t-{name}"
    with Webhook() as webhook, MailServer() as mail_server:
        airflow.add_connection(f"hook_{name}", "http", host=f"http://127.0.0.1:{webhook.port}/alerts")
        airflow.add_connection(f"dead_{name}", "http", host="http://127.0.0.1:9")
        mail = {"disable_ssl": True, "disable_tls": True, "from_email": "a@b.example", "to_email": "c@d.example"}
        airflow.add_connection(f"mail_{name}", "smtp", host="127.0.0.1", port=mail_server.port, extra=mail)
        alerts = f"alerts: {{on_failure: [dead_{name}, hook_{name}, mail_{name}]}}\n"
        dag = airflow.add_archive(name, yaml(topic, name, f"schedule: null\n{alerts}"))
        airflow.pause(dag, False)
        failed = airflow.trigger(dag)
        assert airflow.wait_for_runs(dag, 1) == {failed: "failed"}
        new_topic(kafka.bootstrap_servers, name=topic)
        second = airflow.trigger(dag)
        assert airflow.wait_for_runs(dag, 2) == {failed: "failed", second: "success"}
        # Airflow calls back when the task has succeeded already.
        until(lambda: len(webhook.documents) + len(mail_server.mails) >= 4)
    # One each, although Airflow has called the callbacks of the task and of the run; and one when it is over.
    [document, over], [(recipients, message), (_, end)] = webhook.documents, mail_server.mails
    assert [(d["kind"], d["state"]) for d in (document, over)] == [("failure", "begins"), ("failure", "over")]
    assert end["Subject"] == f"Archive {name}: runs succeed again"
    assert second in over["text"]
    cause = f"could not describe topic {topic}: it does not exist"
    assert cause in document["cause"]
    assert (document["task"], document["attempt"], document["planned"]) == ("plan", 1, None)
    assert document["log_url"].startswith(f"{airflow.url}/dags/{dag}/runs/")
    assert recipients == ["c@d.example"]
    assert cause in text_of(message)
    log = airflow.log(dag, failed, "plan")
    assert f"the alert could not be sent by connection dead_{name}" in log
    assert cause in log
    assert cause in airflow.last_line(dag, failed, "plan")
    notes = {r["dag_run_id"]: r["note"] for r in airflow.runs(dag)}
    assert notes[second].startswith("0 records; ")
    assert cause in notes[failed]
    states = {t.task: (t.state, t.attempt) for t in airflow.tasks(dag, failed)}
    assert states == {"plan": ("failed", 1)} | dict.fromkeys(TASKS[1:], ("upstream_failed", 0))


def test_lag_a_loss_and_damage_are_told_once_and_when_they_are_over(
    airflow: Airflow, kafka: Kafka, s3: S3, name: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(
        kafka.bootstrap_servers, topic, [Record(0, record.timestamp, b"x") for record in records(this_hour(), 1, 30)]
    )
    with Webhook() as webhook, MailServer() as mail_server:
        airflow.add_connection(f"hook_{name}", "http", host=f"http://127.0.0.1:{webhook.port}")
        mail = {"disable_ssl": True, "disable_tls": True, "from_email": "a@b.example", "to_email": "c@d.example"}
        airflow.add_connection(f"mail_{name}", "smtp", host="127.0.0.1", port=mail_server.port, extra=mail)
        alerts = f"alerts: {{on_lag: [hook_{name}, mail_{name}], max_lag_records: 5}}\n"
        before = yaml(topic, name, f"schedule: null\n{alerts}", ", max_records_per_run: 10")
        dag = airflow.add_archive(name, before)
        audits = airflow.parsed(f"audit_{name}")
        for dag_id in (dag, audits):
            airflow.pause(dag_id, False)
        airflow.trigger(dag)
        airflow.wait_for_runs(dag, 1)
        # The alert counts what waits when it is sent.
        until(lambda: webhook.documents and mail_server.mails)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        [gone] = admin.delete_records([TopicPartition(topic, 0, 22)]).values()
        gone.result(30)
        # Nobody parses the DAG again: the tasks of the next run read the new YAML, with another policy and receivers.
        after = before.replace("on_lag:", "on_failure:") + "policies: {lost_offsets: record_loss}\n"
        (airflow.archives / f"{name}.yaml").write_text(f"archive: {name}\n{after}")
        airflow.trigger(dag, max_records=100)
        assert set(airflow.wait_for_runs(dag, 2).values()) == {"success"}
        store = open_store(f"s3://archive/{name}", s3.options())
        damaged = next(stat.key for stat in store.list("") if stat.key.endswith("/plan.json"))
        document = store.get(damaged)
        assert document
        store.delete(damaged)
        for number in (1, 2):
            airflow.trigger(audits)
            assert set(airflow.wait_for_runs(audits, number).values()) == {"failed"}
        store.put(damaged, document)
        last = airflow.trigger(audits)
        assert airflow.wait_for_runs(audits, 3)[last] == "success"
        until(lambda: len(webhook.documents) + len(mail_server.mails) >= 10)
    lag, loss, less, damage, mended = webhook.documents
    alert_states = [(d["kind"], d["state"]) for d in webhook.documents]
    assert alert_states == [
        ("lag", "begins"),
        ("loss", "event"),
        ("lag", "over"),
        ("audit", "begins"),
        ("audit", "over"),
    ]
    assert [message["Subject"] for _, message in mail_server.mails] == [
        d["text"].splitlines()[0] for d in webhook.documents
    ]
    assert "20 offsets" in lag["text"]
    assert "12 offsets" in loss["text"]
    assert "0 offsets" in less["text"]
    assert damaged in damage["cause"]
    assert mended["archive"] == name


def test_a_task_whose_process_is_killed_for_good_is_told_too(airflow: Airflow, kafka: Kafka, name: str) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, 1, b"x")])
    with Webhook() as webhook:
        airflow.add_connection(f"hook_{name}", "http", host=f"http://127.0.0.1:{webhook.port}")
        more = f"schedule: null\nretries: 0\nalerts: {{on_failure: [hook_{name}]}}\n"
        dag = airflow.add_archive(name, yaml(topic, name, more))
        airflow.pause(dag, False)
        run = airflow.trigger(dag)
        job = find_job(name)
        # Airflow's callbacks run in the very process that is killed.
        task = job.parent()
        assert task is not None
        task.kill()
        assert airflow.wait_for_runs(dag, 1) == {run: "failed"}
        [document] = until(lambda: webhook.documents)
    assert document["task"] == "archive"
    assert document["cause"].startswith("the task's process ended without reporting an error")
    assert document["planned"] == f"1 offsets of 1 partitions: {topic}[0] [0, 1)"
    # The job does not live on without its task.
    job.wait(timeout=30)


OTHERS = """
from airflow.sdk import (
    DAG, Asset, DayWindow, PartitionedAssetTimetable, RollupMapper, StartOfDayMapper, get_current_context, task,
)
from airflow.providers.standard.operators.empty import EmptyOperator

HOURS = Asset(uri="archive://{name}/hours")

with DAG("others-hours_{name}", schedule=PartitionedAssetTimetable(assets=HOURS)):
    EmptyOperator(task_id="report")

days = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
with DAG("others-days_{name}", schedule=PartitionedAssetTimetable(assets=HOURS, default_partition_mapper=days)):

    @task
    def report():
        return get_current_context()["dag_run"].partition_key

    report()
"""


def test_other_dags_run_once_for_each_hour_and_once_for_each_day(airflow: Airflow, kafka: Kafka, name: str) -> None:
    moment = this_hour()
    today = moment.replace(hour=0)
    yesterday = today - timedelta(days=1)
    # Due on both midnights, and then for days no more.
    schedule = f"schedule: '0 0 * * {yesterday.isoweekday() % 7},{today.isoweekday() % 7}'\n"
    dag = airflow.add_archive(name, yaml(new_topic(kafka.bootstrap_servers), name, schedule))
    (airflow.others / f"{name}.py").write_text(OTHERS.format(name=name))
    hours, days = f"others-hours_{name}", f"others-days_{name}"
    for other in (hours, days):
        airflow.pause(airflow.parsed(other), False)
    airflow.pause(dag, False)
    # An idle archive that has begun a day ago: all its hours close.
    airflow.wait_for_runs(dag, 1)
    # Nothing closes in this run, so it tells nobody.
    airflow.trigger(dag)
    assert set(airflow.wait_for_runs(dag, 2).values()) == {"success"}
    expected = [
        f"{yesterday + timedelta(hours=h):%Y-%m-%dT%H:00:00}"
        for h in range(int((moment - yesterday) / timedelta(hours=1)))
    ]
    airflow.wait_for_runs(hours, len(expected))
    airflow.wait_for_runs(days, 1)
    assert sorted(run["partition_key"] for run in airflow.runs(hours)) == expected
    [day] = airflow.runs(days)
    assert (day["partition_key"], day["state"]) == (f"{yesterday:%Y-%m-%d}", "success")
    answer = airflow.request(
        "GET",
        address("dags", days, "dagRuns", day["dag_run_id"], "taskInstances", "report", "xcomEntries", "return_value"),
    )
    assert answer["value"] == f"{yesterday:%Y-%m-%d}"
    events = [e for e in airflow.asset_events(dag) if e["uri"] == f"archive://{name}/hours"]
    assert sorted(e["partition_key"] for e in events) == expected


@pytest.fixture
def looks(airflow: Airflow) -> Iterator[Any]:
    """Starts looks of the watchdog, which the test's own trigger alone starts, and waits for their end."""
    dag = "archiver_watchdog"
    airflow.parsed(dag)

    def look() -> str:
        run = airflow.trigger(dag)
        states = until(
            lambda: (
                {r["dag_run_id"]: r["state"] for r in airflow.runs(dag) if r["dag_run_id"] == run}.get(run)
                in ("success", "failed")
            ),
            seconds=180,
            every=1,
        )
        assert states
        [state] = [r["state"] for r in airflow.runs(dag) if r["dag_run_id"] == run]
        assert state == "success", airflow.log(dag, run, "watch")
        return run

    return look


def test_the_watchdog_tells_of_a_wrong_and_of_a_deleted_file_and_of_a_paused_dag(
    airflow: Airflow, kafka: Kafka, name: str, looks: Any
) -> None:
    """None of the archive's runs starts; the watchdog is on without anybody's doing."""
    topic = new_topic(kafka.bootstrap_servers, 2)
    produce(kafka.bootstrap_servers, topic, records(this_hour(), hours=2, each=10))
    with Webhook() as webhook:
        airflow.add_connection(f"hook_{name}", "http", host=f"http://127.0.0.1:{webhook.port}")
        text = yaml(topic, name, f"schedule: null\nalerts: {{on_failure: [hook_{name}]}}\n")
        dag = airflow.add_archive(name, text)
        assert airflow.request("GET", "/dags/archiver_watchdog")["is_paused"] is False
        airflow.pause(dag, False)
        airflow.trigger(dag)
        airflow.wait_for_runs(dag, 1)
        airflow.pause(dag)
        looks()
        produce(kafka.bootstrap_servers, topic, records(this_hour(), hours=2, each=10))
        looks()
        file = airflow.archives / f"{name}.yaml"
        right = file.read_text()
        file.write_text(right + "sink: 1\n")
        looks()
        shown = airflow.fails("archive", "status", name)
        file.unlink()
        looks()
        gone = airflow.fails("archive", "list")
        file.write_text(right)
        looks()
        mine = [(d["kind"], d["state"]) for d in webhook.documents if d["archive"] == name]
    assert mine == [
        ("paused", "begins"),
        ("wrong_file", "begins"),
        ("wrong_file", "over"),
        ("gone", "begins"),
        ("gone", "over"),
    ]
    assert "`sink` is not a key of an archive" in webhook.documents[-4]["cause"]
    assert f"{name}: its YAML file is wrong, so nothing is archived" in shown
    assert "20 rows in" in shown
    assert f"{name}: no file declares it any more" in gone

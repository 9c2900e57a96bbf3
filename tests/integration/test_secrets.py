"""Nobody can read a secret: not in logs, the metadata database, arguments, Spark's UI or event log, nor the store.

One archive under a real Airflow, whose job fails once and then succeeds, and three that cannot reach what they need.
"""

import json
import sqlite3
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from scripts.stack.kafka import Kafka
from scripts.stack.ports import HOST, free_ports
from scripts.stack.s3 import S3
from scripts.stack.spark_cluster import DaemonPorts
from tests.support.airflow import Airflow
from tests.support.proxy import Request, S3Proxy
from tests.support.topics import HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

# In every secret but the S3 server's own.
MARK = "Geheim"
# The plain listener ignores them; both of Kafka's clients take them. With what JSON, Java and JAAS have to escape.
KAFKA_SECRETS = {
    "sasl.mechanism": "PLAIN",
    "sasl.username": "archiver",
    "sasl.password": f"\"Kafka'{MARK}\\12",
    "ssl.key.password": f"Key{MARK}34",
    "sasl.oauthbearer.client.secret": f"Client{MARK}56",
}
UI = ("/environment/", "/jobs/", "/stages/", "/executors/", "/SQL/", "/SQL/execution/?id=0", "/api/v1/applications")
OF_AN_APPLICATION = ("environment", "jobs", "stages?details=true", "allexecutors", "sql?details=true")

Told = dict[str, str]


@contextmanager
def arguments_seen() -> Iterator[set[str]]:
    """The arguments of every process on this machine, from now on."""
    seen: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def web_ui(port: int) -> str:
    """What Spark shows of a running job."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def read(path: str) -> str:
        with opener.open(f"http://{HOST}:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    [application] = json.loads(read("/api/v1/applications"))
    about = f"/api/v1/applications/{application['id']}"
    return "\n".join([*map(read, UI), *(read(f"{about}/{what}") for what in OF_AN_APPLICATION)])


def metadata(database: Path) -> str:
    """All that the database has, but the connections themselves."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"connection", "xcom", "rendered_task_instance_fields", "serialized_dag"} <= set(tables)
        rows = {t: connection.execute(f'SELECT * FROM "{t}"').fetchall() for t in tables if t != "connection"}
    return "\n".join(f"{table}: {row}" for table, found in rows.items() for row in found)


def yaml(topic: str, name: str, **changes: Any) -> str:
    """An archive's YAML, a line a section. :param changes: of `source` and `store`, and `spark`."""
    sections = {
        "schedule": None,
        "retries": 0,
        "source": {"topics": [topic], "kafka": f"kafka_{name}", "reader": "spark", **changes.get("source", {})},
        "store": {"url": f"s3://archive/{name}", "aws": f"aws_{name}", **changes.get("store", {})},
        "spark": {"conf": changes.get("conf", {})},
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in sections.items())


@pytest.fixture(scope="module")
def told(
    airflow: Airflow, kafka: Kafka, s3: S3, stack_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Told:
    """All that people can read, by where they read it."""
    name, events, ui = f"s{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("events"), free_ports(DaemonPorts).web
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, n * HOUR, b"%d" % n) for n in range(1, 4)])
    told: Told = {}
    with S3Proxy(s3.endpoint_url).serving() as proxy, arguments_seen() as arguments:
        add_connections(airflow, name, kafka, s3, proxy)
        in_yaml = {"bootstrap.servers": kafka.bootstrap_servers, "sasl.password": f"Yaml{MARK}78"}
        failing = {
            f"{name}b": yaml(topic, name, source={"kafka": f"nobody_{name}"}),
            f"{name}s": yaml(topic, name, store={"aws": f"wrong_{name}"}),
            f"{name}u": yaml(topic, name, source={"kafka": in_yaml}, store={"url": "s3://no-such-bucket/x"}),
        }
        conf = {
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": str(events),
            "spark.ui.enabled": True,
            "spark.ui.port": ui,
            "spark.log.level": "INFO",
        }
        try:
            for archive, text in {**failing, name: yaml(topic, name, conf=conf)}.items():
                airflow.pause(airflow.add_archive(archive, text), False)
            for archive in failing:
                airflow.trigger(f"archive_{archive}")
            told["web UI"] = run_twice(airflow, f"archive_{name}", proxy, ui)
            for archive in failing:
                assert set(airflow.wait_for_runs(f"archive_{archive}", 1).values()) == {"failed"}, archive
            for archive in (name, *failing):
                told[f"logs of {archive}"] = logs(airflow, f"archive_{archive}")
        finally:
            for archive in (name, *failing):
                with suppress(AssertionError, FileNotFoundError):
                    airflow.remove_archive(archive)
        told["arguments"] = "\n".join(arguments)
    told["event log"] = "\n".join(f.read_text() for f in events.rglob("*") if f.is_file())
    told["metadata"] = metadata(stack_directory / "airflow" / "airflow.db")
    for file in (stack_directory / "airflow").rglob("*.log"):
        told[str(file)] = file.read_text(errors="replace")
    client = s3.client()
    for item in client.list_objects_v2(Bucket=s3.bucket, Prefix=f"{name}/")["Contents"]:
        told[item["Key"]] = client.get_object(Bucket=s3.bucket, Key=item["Key"])["Body"].read().decode("latin-1")
    return told


def add_connections(airflow: Airflow, name: str, kafka: Kafka, s3: S3, proxy: S3Proxy) -> None:
    brokers = {"bootstrap.servers": kafka.bootstrap_servers, **KAFKA_SECRETS}
    airflow.add_connection(f"kafka_{name}", "kafka", extra=brokers)
    nobody = {**brokers, "bootstrap.servers": f"{HOST}:9", "security.protocol": "SASL_PLAINTEXT"}
    airflow.add_connection(f"nobody_{name}", "kafka", extra=nobody)
    extra = {"endpoint_url": proxy.endpoint_url, "region_name": s3.region}
    for kind, password in (("aws", s3.owner.secret_key), ("wrong", f"S3{MARK}90")):
        airflow.add_connection(f"{kind}_{name}", "aws", login=s3.owner.access_key, password=password, extra=extra)


def run_twice(airflow: Airflow, dag: str, proxy: S3Proxy, ui: int) -> str:
    """A run whose job is refused by the store while we look at its web UI, and one that finishes it."""
    looked = threading.Event()

    def refuse(request: Request, _: bool) -> int | None:
        if request.verb == "start":
            looked.wait(120)
            return 403
        return None

    proxy.rule = refuse
    try:
        failed = airflow.trigger(dag)
        until(lambda: any(r.verb == "start" for r in proxy.seen), 200)
        shown = web_ui(ui)
    finally:
        looked.set()
    assert airflow.wait_for_runs(dag, 1) == {failed: "failed"}
    proxy.rule = lambda _, __: None
    second = airflow.trigger(dag)
    assert airflow.wait_for_runs(dag, 2) == {failed: "failed", second: "success"}
    return shown


def logs(airflow: Airflow, dag: str) -> str:
    return "\n".join(airflow.log(dag, t.run_id, t.task, t.attempt) for t in airflow.tasks(dag) if t.attempt)


def test_no_secret_is_anywhere(told: Told, s3: S3) -> None:
    found = {
        f"{where}: {text[max(0, at - 100) : at + 60]!r}"
        for where, text in told.items()
        for secret in (MARK, s3.owner.secret_key)
        if (at := text.find(secret)) >= 0
    }
    assert not found


def test_we_looked_at_the_right_places(told: Told) -> None:
    everything = "\n".join(text for where, text in told.items() if where.startswith("logs of"))
    # The causes of all four failures, with what helps and without what must not be there.
    for cause in ("127.0.0.1:9", "no-such-bucket", "403", "Spark-Submit cmd: spark-submit"):
        assert cause in everything, cause
    assert "org.apache.spark.deploy.SparkSubmit" in told["arguments"]
    assert "pyspark.daemon" in told["arguments"]
    assert "spark.eventLog.dir" in told["web UI"]
    # The job's own query, which has the options of Spark's Kafka source.
    assert "SparkListenerSQLExecutionStart" in told["event log"]
    assert "max_records" in told["metadata"]
    assert any(where.endswith("commit.json") for where in told)

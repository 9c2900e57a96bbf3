"""Nobody can read a secret: not in logs, the metadata database, the REST API, arguments, files, alerts, Spark's UI or
event log, nor the store. Nor the value of a record that an encrypted archive refuses.

One archive under a real Airflow, with a secret in every mapping that its YAML has, whose job fails once and then
succeeds; three that cannot reach what they need; and files that are no archives.
"""

import base64
import json
import re
import sqlite3
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from scripts.stack.errors import StackError
from scripts.stack.kafka import Kafka
from scripts.stack.paths import TEMPORARY
from scripts.stack.ports import HOST, free_ports
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.places import mappings, with_value
from tests.support.proxy import Request, S3Proxy
from tests.support.receivers import Webhook
from tests.support.spark_cluster import DaemonPorts
from tests.support.topics import HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

# In every secret but the S3 server's own.
MARK = "Geheim"
# The master key of the archive that runs, whose objects are encrypted before they are sent.
MASTER = base64.b64encode(b"the master key, known to nobody.").decode()
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
    arguments: set[str] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.1):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    arguments.add(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield arguments
    finally:
        stop.set()
        thread.join()


def web_ui(port: int) -> str:
    """Return what Spark shows of a running job."""

    def read(path: str) -> str:
        return httpx.get(f"http://{HOST}:{port}{path}", timeout=30, trust_env=False).raise_for_status().text

    [application] = json.loads(read("/api/v1/applications"))
    about = f"/api/v1/applications/{application['id']}"
    return "\n".join([*map(read, UI), *(read(f"{about}/{what}") for what in OF_AN_APPLICATION)])


def files_with_secrets(home: Path, s3: S3) -> str:
    """The files of Airflow and of jobs that have one, with what their folder and they themselves let others do.

    Not the database, which has the connections: `metadata` looks into it.
    """
    files = []
    for file in (f for root in (home, TEMPORARY) for f in root.rglob("*") if not f.name.startswith("airflow.db")):
        # Some go meanwhile.
        with suppress(OSError):
            text = file.read_bytes() if file.is_file() else b""
            if any(secret.encode() in text for secret in (MARK, MASTER, s3.owner.secret_key)):
                files.append(f"{file.parent.stat().st_mode & 0o777:o} {file.stat().st_mode & 0o777:o} {file.name}")
    return "\n".join(files)


def look_at_job(ui: int, home: Path, s3: S3) -> Told:
    return {"web UI": web_ui(ui), "files of the job": files_with_secrets(home, s3)}


def rest_api(airflow: Airflow, dags: Iterable[str]) -> str:
    """Return what every address of the REST API says that can be asked about these DAGs, their runs and their tasks."""
    described = httpx.get(f"{airflow.url}/openapi.json", timeout=30, trust_env=False).raise_for_status().json()
    paths = [path for path, methods in described["paths"].items() if "get" in methods]
    # Connections are where secrets belong, and the log of events has them as they were made; one address logs us out,
    # one waits for the end of a run.
    paths = [p.removeprefix("/api/v2") for p in paths if not re.search("/connections|/auth/|/eventLogs|/wait$", p)]
    asked: dict[str, None] = {}
    for dag in dags:
        for task in (t for t in airflow.tasks(dag) if t.attempt):
            known = {
                "dag_id": dag,
                "dag_run_id": task.run_id,
                "run_id": task.run_id,
                "task_id": task.task,
                "map_index": "-1",
                "try_number": "1",
                "task_try_number": "1",
                "dag_version": "1",
                "version_number": "1",
            }
            for path in paths:
                if set(re.findall(r"{(\w+)}", path)) <= set(known):
                    asked[path.format(**known)] = None
    answers = []
    for path in asked:
        try:
            answers.append(f"{path}: {airflow.request('GET', urllib.parse.quote(path, safe='/~'))}")
        except StackError as error:
            answers.append(f"{path}: {error}")
    return "\n".join(answers)


def metadata(database: Path) -> str:
    """All that the database has, but the connections themselves."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"connection", "xcom", "rendered_task_instance_fields", "serialized_dag"} <= set(tables)
        rows = {t: connection.execute(f'SELECT * FROM "{t}"').fetchall() for t in tables if t != "connection"}
    # Airflow notes who made a connection, and with what but its password.
    rows["log"] = [row for row in rows["log"] if "post_connection" not in row]
    return "\n".join(f"{table}: {row}" for table, table_rows in rows.items() for row in table_rows)


def yaml(topic: str, name: str, **changes: Any) -> str:
    """An archive's YAML, a line a section. :param changes: by key, with two underscores for the dot."""
    sections: dict[str, Any] = {
        "schedule": None,
        "retries": 0,
        "source": {"topics": [topic], "kafka": f"kafka_{name}", "reader": "spark"},
        "store": {"url": f"s3://archive/{name}", "aws": f"aws_{name}"},
        "alerts": {"on_failure": [f"hook_{name}", f"gone_{name}"]},
    }
    for key, value in changes.items():
        sections = with_value(sections, tuple(key.split("__")), value)
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in sections.items())


def secrets_everywhere(kafka: Kafka, s3: S3, proxy: S3Proxy, conf: dict[str, Any]) -> dict[str, Any]:
    """Return what to put into each mapping of the YAML, so that the archive works and each holds secrets."""
    options = {
        "source.kafka": {"bootstrap.servers": kafka.bootstrap_servers, **KAFKA_SECRETS},
        "source.registry": {"url": f"http://{HOST}:9", "basic.auth.user.info": f"user:Registry{MARK}", "other": MARK},
        "store.aws": {**s3.options(), "endpoint_url": proxy.endpoint_url},
        "spark.conf": {
            **conf,
            "spark.hadoop.fs.s3a.secret.key": f"Hadoop{MARK}",
            "spark.hadoop.harmless": f"Hadoop{MARK}",
            "spark.metrics.conf.*.sink.nobody.harmless": f"Metrics{MARK}",
            "spark.app.harmless": f"App{MARK}",
            "spark.app.braces": "{{APP_ID}}",
        },
    }
    # A format takes the options that it declares, and declares no secret; what else stands there is refused unread.
    assert {*options, "store.options"} == set(mappings()), "a new mapping of the YAML: put secrets into it"
    return {key.replace(".", "__"): value for key, value in options.items()}


def no_archives(topic: str, name: str) -> dict[str, str]:
    """Files with secrets and mistakes, by the name of the file."""
    wrong = {key.replace(".", "__"): {"some.password": [MARK]} for key in mappings()}
    texts = [yaml(topic, name, **{key: value}) for key, value in wrong.items()]
    texts += [yaml(topic, name, store__url=f"s3://key:{MARK}@bucket"), yaml(topic, name, store__aws=[MARK])]
    texts += [yaml(topic, name, alerts__on_failure=[f"https://host/{MARK}"]), f"source: [{MARK}\n", f"!!int {MARK}\n"]
    return {f"{name}w{number}": text for number, text in enumerate(texts)}


@pytest.fixture(scope="module")
def readable(
    airflow: Airflow, kafka: Kafka, s3: S3, stack_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Told:
    """All that people can read, by where they read it."""
    name, events, ui = f"s{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("events"), free_ports(DaemonPorts).web
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, n * HOUR, b"%d" % n) for n in range(1, 4)])
    home = stack_directory / "airflow"
    texts: Told = {}
    with S3Proxy(s3.endpoint_url).serving() as proxy, Webhook() as hook, arguments_seen() as arguments:
        add_connections(airflow, name, kafka, s3, proxy, hook)
        conf = {
            "spark.eventLog.enabled": True,
            "spark.eventLog.compress": False,
            "spark.eventLog.dir": str(events),
            "spark.ui.enabled": True,
            "spark.ui.port": ui,
            "spark.log.level": "INFO",
        }
        mappings = secrets_everywhere(kafka, s3, proxy, conf)
        archives = {
            f"{name}b": yaml(topic, name, source__kafka=f"nobody_{name}"),
            f"{name}s": yaml(topic, name, store__aws=f"wrong_{name}"),
            f"{name}u": yaml(topic, name, source__kafka=mappings["source__kafka"], store__url="s3://no-such-bucket/x"),
            name: yaml(topic, name, **mappings, store__encryption={"client": {"connection": f"master_{name}"}}),
        }
        *failing, _ = archives
        wrong = no_archives(topic, name)
        try:
            for file, text in wrong.items():
                (airflow.archives / f"{file}.yaml").write_text(text)
            for archive, text in archives.items():
                airflow.pause(airflow.add_archive(archive, text), False)
            for archive in failing:
                airflow.trigger(f"archive_{archive}")
            texts |= run_twice(airflow, f"archive_{name}", proxy, lambda: look_at_job(ui, home, s3))
            for archive in failing:
                assert set(airflow.wait_for_runs(f"archive_{archive}", 1).values()) == {"failed"}, archive
            for archive in archives:
                texts[f"logs of {archive}"] = logs(airflow, f"archive_{archive}")
            texts["REST API"] = rest_api(airflow, [f"archive_{archive}" for archive in archives])
            texts["import errors"] = until(lambda: said_of(airflow, wrong), seconds=90, every=0.5)
        finally:
            for file in wrong:
                (airflow.archives / f"{file}.yaml").unlink(missing_ok=True)
            for archive in archives:
                with suppress(StackError, FileNotFoundError):
                    airflow.remove_archive(archive)
        texts["arguments"] = "\n".join(arguments)
        texts["alerts"] = json.dumps(hook.documents)
    texts["event log"] = "\n".join(f.read_text() for f in events.rglob("*") if f.is_file())
    texts["metadata"] = metadata(home / "airflow.db")
    texts["files afterwards"] = files_with_secrets(home, s3)
    for file in home.rglob("*.log"):
        texts[str(file)] = file.read_text(errors="replace")
    client = s3.client()
    for item in client.list_objects_v2(Bucket=s3.bucket, Prefix=f"{name}/")["Contents"]:
        texts[item["Key"]] = client.get_object(Bucket=s3.bucket, Key=item["Key"])["Body"].read().decode("latin-1")
    return texts


def said_of(airflow: Airflow, wrong: Iterable[str]) -> str:
    """The import errors, once they name all these files."""
    errors = json.dumps(airflow.import_errors())
    return errors if all(file in errors for file in wrong) else ""


def add_connections(airflow: Airflow, name: str, kafka: Kafka, s3: S3, proxy: S3Proxy, hook: Webhook) -> None:
    brokers = {"bootstrap.servers": kafka.bootstrap_servers, **KAFKA_SECRETS}
    airflow.add_connection(f"kafka_{name}", "kafka", extra=brokers)
    nobody = {**brokers, "bootstrap.servers": f"{HOST}:9", "security.protocol": "SASL_PLAINTEXT"}
    airflow.add_connection(f"nobody_{name}", "kafka", extra=nobody)
    extra = {"endpoint_url": proxy.endpoint_url, "region_name": s3.region}
    for kind, password in (("aws", s3.owner.secret_key), ("wrong", f"S3{MARK}90")):
        airflow.add_connection(f"{kind}_{name}", "aws", login=s3.owner.access_key, password=password, extra=extra)
    airflow.add_connection(f"master_{name}", "generic", password=MASTER)
    # Who knows such an address may post to it.
    for kind, port in (("hook", hook.port), ("gone", 9)):
        airflow.add_connection(f"{kind}_{name}", "http", host=f"http://{HOST}:{port}/hooks/{MARK}?token=Token{MARK}")


def run_twice(airflow: Airflow, dag: str, proxy: S3Proxy, look: Callable[[], Told]) -> Told:
    """A run whose job is refused by the store while we look at it, and one that finishes it."""
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
        shown = look()
    finally:
        looked.set()
    assert airflow.wait_for_runs(dag, 1) == {failed: "failed"}
    proxy.rule = lambda _, __: None
    second = airflow.trigger(dag)
    assert airflow.wait_for_runs(dag, 2) == {failed: "failed", second: "success"}
    return shown


def logs(airflow: Airflow, dag: str) -> str:
    return "\n".join(airflow.log(dag, t.run_id, t.task, t.attempt) for t in airflow.tasks(dag) if t.attempt)


def test_no_secret_is_anywhere(readable: Told, s3: S3) -> None:
    places = {
        f"{where}: {text[max(0, at - 100) : at + 60]!r}"
        for where, text in readable.items()
        for secret in (MARK, MASTER, s3.owner.secret_key)
        if (at := text.find(secret)) >= 0
    }
    assert not places


def test_we_looked_at_the_right_places(readable: Told) -> None:
    everything = "\n".join(text for where, text in readable.items() if where.startswith("logs of"))
    # The causes of all four failures, with what helps and without what must not be there.
    for cause in (
        "127.0.0.1:9",
        "no-such-bucket",
        "refuses the credentials",
        "access denied",
        "Spark-Submit cmd: spark-submit",
    ):
        assert cause in everything, cause
    assert "org.apache.spark.deploy.SparkSubmit" in readable["arguments"]
    assert "kafka_archiver.spark.daemon" in readable["arguments"]
    assert "spark.eventLog.dir" in readable["web UI"]
    # The job's own query, which has the options of Spark's Kafka source.
    assert "SparkListenerSQLExecutionStart" in readable["event log"]
    assert "max_records" in readable["metadata"]
    assert any(where.endswith("commit.json") for where in readable)
    # In the documentation, in Spark's UI and in its event log by their names.
    for name in ("spark.app.harmless", "spark.hadoop.harmless", "spark.app.braces"):
        assert f"| `spark.conf.{name}` | `(given)` |" in readable["REST API"], name
        assert name in readable["web UI"]
        assert name in readable["event log"]
    assert "*********(redacted)" in readable["web UI"]
    for part in ("/dagSources/", "/importErrors", "/xcomEntries", "/logs/1", "/taskInstances/archive", "/details"):
        assert part in readable["REST API"], part
    assert "`spark.conf.some.password`: expected text" in readable["import errors"]
    # The failed runs have been told of, and that one is over; each log says that one of the two could not be reached.
    assert len(json.loads(readable["alerts"])) == 5
    assert everything.count("the alert could not be sent by connection gone_") >= 4


def test_the_one_file_that_has_secrets_is_its_owners_alone_and_goes_with_the_job(readable: Told) -> None:
    assert readable["files of the job"] == "700 600 spark.properties"
    assert readable["files afterwards"] == ""


def test_nobody_reads_the_value_that_an_encrypted_archive_refuses(
    airflow: Airflow, kafka: Kafka, s3: S3, stack_directory: Path
) -> None:
    """Look into logs, run notes, XCom, all else of the database, the REST API and the alert."""
    name, topic = f"v{uuid.uuid4().hex[:8]}", new_topic(kafka.bootstrap_servers)
    value = json.dumps({"a": f"Value{MARK}"}).encode()
    produce(kafka.bootstrap_servers, topic, [Record(0, HOUR, value, value)])
    keys = {
        "source__value": {"decode": "json", "schema": [{"name": "a", "type": "timestamp[ms]"}]},
        "source__reader": "native",
        "store__format": "parquet",
        "store__encryption": {"client": {"connection": f"master_{name}"}},
        "alerts": {"on_failure": [f"hook_{name}"]},
    }
    with S3Proxy(s3.endpoint_url).serving() as proxy, Webhook() as hook:
        add_connections(airflow, name, kafka, s3, proxy, hook)
        dag = airflow.add_archive(name, yaml(topic, name, **keys))
        airflow.pause(dag, False)
        airflow.trigger(dag)
        try:
            assert set(airflow.wait_for_runs(dag, 1, seconds=500).values()) == {"failed"}
            texts = {"logs": logs(airflow, dag), "REST API": rest_api(airflow, [dag])}
            texts["metadata"] = metadata(stack_directory / "airflow" / "airflow.db")
            until(lambda: hook.documents, seconds=60)
        finally:
            airflow.remove_archive(name)
        texts["alert"] = json.dumps(hook.documents)
    places = {where: text[max(0, at - 200) : at + 60] for where, text in texts.items() if (at := text.find(MARK)) >= 0}
    assert places == {}
    for where in ("logs", "metadata", "alert"):
        assert "(not shown: the archive is encrypted)" in texts[where], where

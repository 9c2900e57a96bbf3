"""Case 18 under a real Airflow: the process of each task, and the scheduler, killed while it is at work.

The archive's store stands behind a proxy that holds the request in whose middle the kill comes.
"""

import gzip
import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

import psutil
import pytest

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.values.ranges import TopicPartition
from scripts.stack.kafka import Kafka
from scripts.stack.process import command_of, marked
from scripts.stack.s3 import S3
from tests.support.airflow import Airflow
from tests.support.proxy import Hold, S3Proxy
from tests.support.topics import HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

# What each task is held at. Of the archive's objects some are visible then, and others not.
MIDDLE = {
    "plan": ("put", "/plan.json"),
    "archive": ("complete", "+00000000000000000004.jsonl.gz"),
    "verify": ("head", ".jsonl.gz"),
    "commit": ("put", "/commit.json"),
    "close_hours": ("put", "/progress.json"),
}


@dataclass
class Archive:
    """One archive of two partitions under Airflow, its store behind the proxy."""

    name: str
    topic: str
    dag: str
    proxy: S3Proxy
    s3: S3
    brokers: str

    def hold(self, task: str) -> Hold:
        """The task comes no further than to its middle; nothing of a dead process is still to come later."""
        rule = Hold(*MIDDLE[task], refused=True)
        self.proxy.rule = rule
        return rule

    def documents(self) -> dict[str, bytes]:
        """All that is stored, by key without the archive's prefix."""
        client = self.s3.client()
        objects = client.list_objects_v2(Bucket=self.s3.bucket, Prefix=f"{self.name}/").get("Contents", [])
        keys = [item["Key"] for item in objects]
        get = client.get_object
        return {key.split("/", 1)[1]: get(Bucket=self.s3.bucket, Key=key)["Body"].read() for key in keys}

    def values(self) -> list[int]:
        objects = [data for key, data in self.documents().items() if key.endswith(".jsonl.gz")]
        return sorted(int(line) for data in objects for line in gzip.decompress(data).splitlines())

    def group(self, partitions: int) -> list[int | None]:
        """Where the group stands."""
        names = [TopicPartition(self.topic, n) for n in range(partitions)]
        return list(Cluster({"bootstrap.servers": self.brokers}).committed(f"archiver-{self.name}", names).values())

    def proofs(self) -> list[tuple[str, int]]:
        """Status and rows of each hour, in their order."""
        documents = sorted((k, json.loads(data)) for k, data in self.documents().items() if "/hours/" in k)
        return [(d["status"], d["rows"]) for _, d in documents]


@pytest.fixture
def archive(airflow: Airflow, kafka: Kafka, s3: S3) -> Iterator[Archive]:
    """It has ten records in each of the two hours before this one."""
    name = f"x{uuid.uuid4().hex[:8]}"
    topic = new_topic(kafka.bootstrap_servers, 2)
    add(kafka, topic, range(20))
    with S3Proxy(s3.endpoint_url).serving() as proxy:
        extra = {"endpoint_url": proxy.endpoint_url, "region_name": s3.region}
        owner = s3.owner
        airflow.add_connection(f"aws_{name}", "aws", login=owner.access_key, password=owner.secret_key, extra=extra)
        store = f"{{url: 's3://{s3.bucket}/{name}', aws: aws_{name}, chunk_records: 4}}"
        dag = airflow.add_archive(name, f"schedule: null\nsource: {{topics: [{topic}]}}\nstore: {store}\n")
        try:
            airflow.pause(dag, False)
            yield Archive(name, topic, dag, proxy, s3, kafka.bootstrap_servers)
        finally:
            proxy.rule = lambda _, __: None
            airflow.remove_archive(name)


def add(kafka: Kafka, topic: str, numbers: range) -> None:
    this_hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    first = int((this_hour - timedelta(hours=2)).timestamp() * 1000)
    produce(kafka.bootstrap_servers, topic, [Record(n % 2, first + n // 2 % 2 * HOUR + n, b"%d" % n) for n in numbers])


def process_of(airflow: Airflow, dag: str, run: str, task: str) -> psutil.Process:
    """The process in which a task runs; Airflow gives it a title."""
    title = f"airflow worker -- {airflow.instance(dag, run, task)['id']}"
    processes = [p for p in psutil.process_iter(["cmdline"]) if " ".join(p.info["cmdline"] or ()).strip() == title]
    assert len(processes) == 1, processes
    return processes[0]


def kill_spark(family: list[psutil.Process]) -> Path:
    """Kill spark-submit, so that it removes nothing. Returns the directory of its task."""
    [(submit, command)] = [(p, c) for p in family if "org.apache.spark.deploy.SparkSubmit" in (c := command_of(p))]
    folder = Path(command[command.index("--py-files") + 1]).parent
    submit.kill()
    return folder


def test_case_18_the_scheduler_killed_while_a_task_is_at_work(
    airflow: Airflow, archive: Archive, stack_directory: Path
) -> None:
    dag, hold = archive.dag, archive.hold("archive")
    run = airflow.trigger(dag)
    assert hold.came.wait(120)
    [scheduler] = [p for p in marked(stack_directory / "airflow") if command_of(p)[-1:] == ["scheduler"]]
    command, environment, directory = scheduler.cmdline(), scheduler.environ(), scheduler.cwd()
    scheduler.kill()
    # Nobody waits for it, so that it does not disappear.
    until(lambda: scheduler.status() == psutil.STATUS_ZOMBIE)
    hold.gone.set()
    # As whatever supervises it does.
    with (stack_directory / "airflow" / "scheduler.log").open("wb") as log:
        subprocess.Popen(command, env=environment, cwd=directory, stdout=log, stderr=log, start_new_session=True)
    assert airflow.wait_for_runs(dag, 1) == {run: "success"}
    assert archive.values() == list(range(20))
    assert archive.proofs() == [("complete", 10), ("complete", 10)]


# The last one: after the kills, Airflow's DAG processor parses nothing for most of a minute.
def test_case_18_each_task_killed_in_its_middle_and_the_run_ends_right(airflow: Airflow, archive: Archive) -> None:
    dag, folder = archive.dag, Path()
    hold = archive.hold("plan")
    run = airflow.trigger(dag)
    for task, following in zip_longest(MIDDLE, [*MIDDLE][1:]):
        assert hold.came.wait(120), task
        process = process_of(airflow, dag, run, task)
        family = process.children(recursive=True)
        process.kill()
        if task == "archive":
            folder = kill_spark(family)
        # What is left of the job of a dead task ends itself.
        _, alive = psutil.wait_procs(family, timeout=60)
        assert not alive
        if task == "archive":
            assert {p.name.split("-")[0] for p in folder.iterdir()} >= {"blockmgr", "spark"}
        dead, hold = hold, archive.hold(following) if following else hold
        dead.gone.set()
        # Nobody is needed: Airflow tries again by itself, and a person may do it sooner.
        until(lambda t=task: airflow.instance(dag, run, t)["state"] == "up_for_retry", 60, every=0.5)
        if task != "plan":
            body = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "only_failed": False}
            airflow.request("POST", f"/dags/{dag}/clearTaskInstances", body)
    assert airflow.wait_for_runs(dag, 1) == {run: "success"}
    assert {t.task: t.attempt for t in airflow.tasks(dag, run)} == dict.fromkeys(MIDDLE, 2)
    assert archive.values() == list(range(20))
    assert archive.proofs() == [("complete", 10), ("complete", 10)]
    assert archive.group(2) == [10, 10]
    closed = [e["extra"]["hour"] for e in airflow.asset_events(dag) if e["partition_key"] is None]
    assert len(closed) == len(set(closed)) == 2
    assert not folder.exists(), "the next task removes what a killed one has left"

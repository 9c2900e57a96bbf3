"""A Spark cluster that loses machines: nothing is lost, nothing is twice, and no byte differs from a quiet run's."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Self

import psutil
import pytest

from kafka_archiver.spark.failures import MARK, PERMANENT_EXIT
from kafka_archiver.work.plan import PlannedWork
from scripts.stack.kafka import Kafka
from scripts.stack.process import command_of
from scripts.stack.s3 import S3
from tests.support.archiver import Archiver, hour
from tests.support.proxy import Request, S3Proxy
from tests.support.spark_cluster import ClusterArchiver, SparkCluster, Worker
from tests.support.topics import DAY, HOUR, Record, new_topic, produce
from tests.support.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

# A task has 10,000 offsets at least: enough for more tasks than executors.
PARTITIONS, HOURS, RECORDS = 4, 8, 40_000
LINES = {
    f"date=2026-11-21/hour=0{h}": sorted(n for n in range(RECORDS) if n // PARTITIONS % HOURS == h)
    for h in range(HOURS)
}


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    """Four partitions, so four tasks, each with eight hours, which is more than the threads that upload."""
    topic = new_topic(kafka.bootstrap_servers, PARTITIONS)
    records = [Record(n % PARTITIONS, DAY + n // PARTITIONS % HOURS * HOUR, b"%d" % n) for n in range(RECORDS)]
    produce(kafka.bootstrap_servers, topic, records)
    return topic


@pytest.fixture(scope="module")
def quiet(kafka: Kafka, s3: S3, topic: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The ETags that a run without a cluster gives."""
    archiver = Archiver(kafka, s3, tmp_path_factory.mktemp("quiet"), [topic])
    archiver.run(hour(8), plain=True)
    return archiver.etags()


class Held:
    """Holds the parts that come to a proxy, until it is let go."""

    def __init__(self, proxy: S3Proxy) -> None:
        self._gate = Event()
        self._proxy = proxy
        proxy.rule = self._hold

    def _hold(self, request: Request, done: bool) -> None:
        if request.verb == "part" and not done:
            assert self._gate.wait(200)

    def wait_for_both(self) -> None:
        """Until both executors have a part on its way."""
        until(lambda: len({_partition(r) for r in self._proxy.seen if r.verb == "part"}) == 2, 120)

    def let_go(self) -> None:
        self._gate.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()


def _partition(request: Request) -> str:
    return request.key.rsplit("/", 1)[1].split("+")[1]


@contextmanager
def submitted(archiver: Archiver, work: PlannedWork) -> Iterator["subprocess.Popen[str]"]:
    """The job, running; gone at the end, whatever happens."""
    job = archiver.start(work.archive)
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait(30)


def check(archiver: Archiver, quiet: dict[str, str]) -> None:
    """Every record once, and the bytes of a quiet run."""
    assert {path: sorted(lines) for path, lines in archiver.lines().items()} == LINES
    assert archiver.etags() == quiet
    assert archiver.account(hour(8)) == {"archived": RECORDS}


# Both readers fail in the same way: each has its turn.
SPARK = {"reader": "spark"}


def test_a_worker_killed_in_the_middle(
    kafka: Kafka, s3: S3, proxy: S3Proxy, topic: str, quiet: dict[str, str], cluster: SparkCluster, tmp_path: Path
) -> None:
    archiver = ClusterArchiver(kafka, s3, tmp_path, [topic], source={"reader": "native"}, proxy=proxy, cluster=cluster)
    work = archiver.plan(hour(8))
    with submitted(archiver, work) as job:
        with Held(proxy) as paused:
            paused.wait_for_both()
            cluster.workers[0].stop(grace=0)
            assert not cluster.workers[0].processes()
        output, _ = job.communicate(timeout=200)
    assert job.returncode == 0, output[-5000:]
    assert "Lost executor" in output, output
    archiver.finish(work)
    check(archiver, quiet)
    # What the dead executor had sent is gone with the commit.
    assert list(archiver.context.store.list_uploads("")) == []


def test_what_no_further_try_can_mend_is_tried_once_and_no_other_task_is_waited_for(
    kafka: Kafka, s3: S3, proxy: S3Proxy, cluster: SparkCluster, tmp_path: Path
) -> None:
    topic, brokers = new_topic(kafka.bootstrap_servers, 2), kafka.bootstrap_servers
    produce(brokers, topic, [Record(0, DAY, b"no JSON")])
    produce(brokers, topic, [Record(1, DAY, b"%d" % n) for n in range(10_000)])
    source = {**SPARK, "value": {"decode": "json"}}
    events = {"enabled": "true", "dir": tmp_path.as_uri(), "compress": "false", "rolling.enabled": "false"}
    conf = {f"spark.eventLog.{name}": value for name, value in events.items()}
    archiver = ClusterArchiver(
        kafka, s3, tmp_path, [topic], source=source, proxy=proxy, cluster=cluster, spark_conf=conf
    )
    # The other task cannot end.
    with submitted(archiver, archiver.plan(hour(0))) as job, Held(proxy):
        output, _ = job.communicate(timeout=300)
    assert job.returncode == PERMANENT_EXIT, output[-5000:]
    # Spark may still log that its executors are gone; the task reads the marked line.
    [marked] = [line for line in output.splitlines() if line.startswith(MARK)]
    assert f"{topic}[0] offset 0: " in marked
    [file] = tmp_path.glob("app-*")
    ended = [e for e in map(json.loads, file.read_text().splitlines()) if e["Event"] == "SparkListenerTaskEnd"]
    assert [e["Task Info"]["Attempt"] for e in ended if e["Task End Reason"]["Reason"] != "TaskKilled"] == [0], ended
    assert {e["Task Info"]["Attempt"] for e in ended} == {0}


def test_a_worker_that_froze_and_goes_on_after_everything_was_committed(
    kafka: Kafka, s3: S3, proxy: S3Proxy, topic: str, quiet: dict[str, str], cluster: SparkCluster, tmp_path: Path
) -> None:
    # How long an executor may be silent until it counts as dead.
    conf = {"spark.storage.blockManagerHeartbeatTimeoutMs": "8s"}
    archiver = ClusterArchiver(
        kafka, s3, tmp_path, [topic], source=SPARK, proxy=proxy, cluster=cluster, spark_conf=conf
    )
    work = archiver.plan(hour(8))
    frozen = cluster.workers[0]
    with submitted(archiver, work) as job, Held(proxy) as paused:
        paused.wait_for_both()
        zombies = freeze(frozen)
        try:
            # The other goes on, takes its tasks over, and the run is committed.
            paused.let_go()
            output, _ = job.communicate(timeout=200)
            assert job.returncode == 0, output[-5000:]
            assert "Lost executor" in output
            archiver.finish(work)
            check(archiver, quiet)
            proxy.seen.clear()
            # Python first: Spark's JVM ends it as soon as it sees that the driver is gone.
            thaw([process for process in zombies if is_python(process)])
            until(lambda: any(r.verb == "part" for r in proxy.seen), 60)
        finally:
            thaw(zombies)
    until(lambda: not any(map(is_python, frozen.processes())), 60)
    check(archiver, quiet)
    # The rest of what it began goes when somebody commits again.
    archiver.finish(work)
    assert list(archiver.context.store.list_uploads("")) == []
    check(archiver, quiet)


def freeze(worker: Worker) -> list[psutil.Process]:
    """Freeze it, its executor and the executor's Python, as a machine that hangs."""
    processes = worker.processes()
    for process in processes:
        process.suspend()
    return processes


def thaw(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def is_python(process: psutil.Process) -> bool:
    """Return True if it is the Python of an executor."""
    return "pyspark.daemon" in command_of(process)

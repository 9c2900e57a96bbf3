"""An archive on real services, with one method per step: the tasks of the DAG without Airflow."""

import copy
import gzip
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.driver.end_with_parent import TASK_PID
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.proof import HourProof
from kafka_archiver.orchestration.submit.spark_conf import java_settings
from kafka_archiver.records.writer.result import Limits
from kafka_archiver.spark.engine import SparkEngine
from kafka_archiver.store import Stat, open_store
from kafka_archiver.values.intervals import Interval, to_ms
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.archive.step import ArchiveStep
from kafka_archiver.work.backlog import archive_runs
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import Origin, PlannedWork, plan
from kafka_archiver.work.verify import verify
from scripts.stack.class_data import class_data
from scripts.stack.java import find_java
from scripts.stack.kafka import Kafka
from scripts.stack.paths import BIN, ROOT, SPARK_JARS
from scripts.stack.s3 import S3
from scripts.stack.spark_conf import driver_settings
from tests.support import quick
from tests.support.plain import PlainEngine
from tests.support.proxy import S3Proxy
from tests.support.step import start_step
from tests.support.topics import DAY, Record, delete_records, new_topic, produce
from tests.support.worlds import Clocked

FIRST = datetime.fromtimestamp(DAY / 1000, UTC)


@cache
def _class_data() -> Path | None:
    return class_data(find_java())


def quick_driver(temporary: Path) -> dict[str, str]:
    """Spark's settings for a driver's JVM that starts fast: tests start many."""
    return driver_settings(" ".join((*quick.JAVA, f"-Djava.io.tmpdir={temporary}")), _class_data())


def hour(number: int) -> Interval:
    """The `number`th hour of the tests' day."""
    return Interval(start=FIRST + timedelta(hours=number), end=FIRST + timedelta(hours=number + 1))


@dataclass
class Archiver:
    """One archive of some topics, below its own prefix.

    Its clock, and the store's, are one minute after the end of the last planned interval.
    """

    kafka: Kafka
    s3: S3
    directory: Path
    topics: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    spark_conf: dict[str, str] = field(default_factory=dict)
    # Further keys of the YAML.
    more: dict[str, Any] = field(default_factory=dict)
    # The URL of the schema registry.
    registry: str | None = None
    proxy: S3Proxy | None = None
    brokers: str | None = None
    # Further client properties; they override ours.
    client: dict[str, str] = field(default_factory=dict)
    # Submit the job without Spark tasks, which is cheaper.
    plain: bool = False
    # Of the endpoints, for objects that are encrypted before they are sent.
    master_keys: dict[str, str] = field(default_factory=dict)
    # A list, because the archivers from `behind` share it.
    now: list[datetime] = field(default_factory=lambda: [FIRST])

    def __post_init__(self) -> None:
        name = f"a{uuid.uuid4().hex[:8]}"
        self.archive = Archive.model_validate(
            {
                "archive": name,
                "source": {"topics": self.topics, **self.source, **({"registry": "r"} if self.registry else {})},
                "store": {"url": f"s3://{self.s3.bucket}/{name}", **self.settings},
                "policies": self.policies,
                **self.more,
            }
        )
        self.context = self._open(self._endpoints(self.s3.endpoint_url))

    def _open(self, endpoints: Endpoints) -> Context:
        registry = (lambda: {"url": self.registry or ""}) if self.registry else None
        context, clock = Context.open(self.archive, endpoints, registry), self.now
        store: Any = Clocked(context.store, lambda: to_ms(clock[0]))
        return replace(context, clock=lambda: clock[0], store=store)

    def behind(self, proxy: S3Proxy | None = None, brokers: str | None = None) -> "Archiver":
        """The same archive behind the proxies: its job and its steps use them, also in this process."""
        other = copy.copy(self)
        other.proxy, other.brokers = proxy or self.proxy, brokers or self.brokers
        other.context = other._open(other._outside())
        return other

    def _outside(self) -> Endpoints:
        """The endpoints of separate processes and of the job: through the proxy, which the test itself does not use."""
        return self._endpoints(self.proxy.endpoint_url if self.proxy else self.s3.endpoint_url)

    def _endpoints(self, endpoint_url: str) -> Endpoints:
        kafka = {"bootstrap.servers": self.brokers or self.kafka.bootstrap_servers, **self.client}
        store = {**self.s3.options(), "endpoint_url": endpoint_url}
        return Endpoints(kafka, store, master_keys=self.master_keys)

    def plan(self, interval: Interval, origin: Origin = "scheduled") -> PlannedWork:
        self.now[0] = max(self.now[0], interval.end + timedelta(minutes=1))
        return plan(self.context, interval, origin)

    def produce(self, records: Iterable[Record], transaction: str | None = None) -> None:
        """To the first topic. `transaction`: "commit" or "abort"."""
        produce(self.kafka.bootstrap_servers, self.topics[0], records, transaction)

    def delete_records(self, before: int) -> None:
        """Let the first topic begin at an offset, as retention does."""
        delete_records(self.kafka.bootstrap_servers, self.topics[0], before)

    def command(self, runs: Iterable[str]) -> list[str]:
        """The spark-submit command of the task `archive`."""
        conf = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.directory),
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
            **quick_driver(self.directory),
            "spark.log.level": "WARN",
            **self.spark_conf,
        }
        return [
            str(BIN / "spark-submit"),
            "--master",
            "local[2]",
            "--jars",
            ",".join(map(str, sorted(SPARK_JARS.glob("*.jar")))),
            *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
            str(ROOT / ("tests/support/plain.py" if self.plain else "spark_jobs/archive.py")),
            ArchiveJob.of(self.archive, list(runs)).to_argument(),
        ]

    def environment(self, **extra: str) -> dict[str, str]:
        """The environment that the task `archive` gives to the job."""
        return {
            **os.environ,
            **java_settings(self.archive.source.reader, os.environ, self.directory),
            TASK_PID: str(os.getpid()),
            ENDPOINTS: self._outside().to_json(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'include'}{os.pathsep}{ROOT}",
            **extra,
        }

    def start(self, runs: Iterable[str], **environment: str) -> "subprocess.Popen[str]":
        """Start the job."""
        return subprocess.Popen(
            self.command(runs),
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
            start_new_session=True,
        )

    def start_step(self, name: str, *runs: str) -> BaseProcess:
        """Start a step in its own process; its output goes to the file `step.log`."""
        log = self.directory / "step.log"
        return start_step(log, name, self.archive, self._outside(), self.now[0], runs)

    def job(self, plain: bool = False) -> ArchiveStep:
        """The job in this process: in the running Spark session, or without Spark."""
        endpoints = self._outside()
        kafka, store, url = dict(endpoints.kafka), dict(endpoints.store), self.archive.store.url
        limits = Limits(
            spill_directory=self.directory,
            record_seconds=self.archive.spark.record_seconds,
            record_memory_bytes=self.archive.spark.record_memory_bytes,
        )
        opened = open_store(url, store)
        return ArchiveStep(
            Cluster(kafka),
            opened,
            Ledger(opened, self.archive.archive, self.context.ledger.keyring),
            PlainEngine(kafka, opened, limits)
            if plain
            else SparkEngine(url, store, kafka, limits, self.archive.source.reader),
            ReadPolicies.of(self.archive.policies.model_dump()),
        )

    def submit(self, runs: Iterable[str], expect: int = 0, **environment: str) -> str:
        """Run the job to its end. Returns its output."""
        process = self.start(runs, **environment)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == expect, output[-5000:]
        return output

    def submitted(self, work: PlannedWork) -> list[HourProof]:
        """Run the steps after the plan, the job with spark-submit."""
        self.submit(work.archive)
        return self.finish(work)

    def finish(self, work: PlannedWork) -> list[HourProof]:
        verify(self.context, work.runs)
        commit(self.context, work.runs)
        return [changed.proof for changed in close_hours(self.context, work.runs).changed]

    def run(self, interval: Interval, origin: Origin = "scheduled", plain: bool = False) -> list[HourProof]:
        """A complete run, with the job in this process."""
        return self.work(self.plan(interval, origin), plain)

    def work(self, work: PlannedWork, plain: bool = False) -> list[HourProof]:
        """Run the steps after the plan."""
        archive_runs(self.context, work, self.job(plain).run)
        return self.finish(work)

    def choose(self, **policies: str) -> None:
        """Set policies, like an edit of the YAML."""
        self.archive = self.archive.choosing(policies)
        self.context = replace(self.context, archive=self.archive)

    def objects(self) -> dict[str, Stat]:
        """The stored objects without the ledger, by key."""
        return {s.key: s for s in self.context.store.list("") if not s.key.startswith("_ledger/")}

    def etags(self) -> dict[str, str]:
        """The ETag of every object."""
        return {key: stat.etag for key, stat in self.objects().items()}

    def group(self, partitions: int = 1) -> list[int | None]:
        """The group's offset in each partition of the first topic."""
        names = [TopicPartition(self.topics[0], n) for n in range(partitions)]
        return list(self.context.cluster.committed(self.archive.group, names).values())

    def values(self) -> list[Any]:
        """The JSON lines of all objects, sorted."""
        return sorted(value for lines in self.lines().values() for value in lines)

    def planned(self, run: str) -> Plan:
        plan = self.context.ledger.plan(run)
        assert plan
        return plan

    def manifest(self, interval: Interval) -> Manifest:
        manifest = self.context.ledger.manifest(interval.id)
        assert manifest
        return manifest

    def account(self, interval: Interval) -> dict[str, int]:
        """A run's account, without zeros."""
        return {fate: count for fate, count in self.manifest(interval).account.items() if count}

    def uploads(self) -> list[str]:
        """The keys of uploads that are not finished."""
        return [key for key, *_ in self.context.store.list_uploads("")]

    def lines(self) -> dict[str, list[Any]]:
        """The JSON lines of all .jsonl.gz objects in key order, by the path of the hour."""
        lines_by_key: dict[str, list[Any]] = {}
        for key in sorted(self.objects()):
            data = self.context.store.get(key)
            assert data is not None
            path = key.split("/", 1)[1].rsplit("/", 1)[0]
            lines_by_key.setdefault(path, []).extend(map(json.loads, gzip.decompress(data).splitlines()))
        return lines_by_key


@dataclass(frozen=True)
class Services:
    """The services that archives stand on: a broker, an S3 server, and a directory."""

    kafka: Kafka
    s3: S3
    directory: Path

    def topic(self, records: Iterable[Record] = (), partitions: int = 1) -> str:
        """A topic of its own, of these records."""
        topic = new_topic(self.kafka.bootstrap_servers, partitions)
        produce(self.kafka.bootstrap_servers, topic, records)
        return topic

    def archive_of(self, *topics: str, **options: Any) -> Archiver:
        """An archive of these topics. `options`: see :class:`Archiver`."""
        return Archiver(self.kafka, self.s3, self.directory, [*topics], **options)

    def archive(self, records: Iterable[Record] = (), partitions: int = 1, **options: Any) -> Archiver:
        """An archive of a topic of its own, of these records."""
        return self.archive_of(self.topic(records, partitions), **options)

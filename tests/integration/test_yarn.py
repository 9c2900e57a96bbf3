"""A job whose driver runs on a real YARN: it archives, and nobody but its user can read what it was told."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_archiver.config import Archive
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.orchestration.submit.operator import ArchiveOperator
from kafka_archiver.records.writer.disk import locked_directory
from scripts.stack.java import find_java
from scripts.stack.kafka import Kafka
from scripts.stack.paths import BIN, SPARK_HOME
from scripts.stack.s3 import S3
from tests.support import quick
from tests.support.archiver import Archiver, hour
from tests.support.topics import DAY, Record, new_topic, produce
from tests.support.yarn import Yarn

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]
MARK = "Geheim77"


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    running = Yarn(tmp_path_factory.mktemp("yarn"))
    try:
        running.start()
        yield running
    finally:
        running.stop(grace=0)


def test_a_driver_on_yarn_archives_and_nobody_else_reads_its_endpoints(
    kafka: Kafka, s3: S3, yarn: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    produce(kafka.bootstrap_servers, topic, [Record(0, DAY + n, b"%d" % n) for n in range(100)])
    archiver = Archiver(kafka, s3, tmp_path, [topic], client={"sasl.password": MARK})
    for name, value in {
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}',
        "_AIRFLOW_PROCESS_CONTEXT": "server",
        "HADOOP_CONF_DIR": str(yarn.conf),
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_CONF_DIR": str(tmp_path),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, value)
    work = archiver.plan(hour(0))
    archive = with_settings(archiver, tmp_path)
    task = ArchiveOperator(task_id="archive", archive=archive, document=ArchiveJob)
    [run] = work.archive
    with locked_directory(tmp_path) as (folder, lock):
        task.hook(archive, run, folder, lock).submit(task.application)
    archiver.finish(work)
    assert archiver.account(hour(0)) == {"archived": 100}
    # What the job was told is on the machine's disk, once: a file that the job's user alone can read.
    files_with_secrets = {f for f in yarn.local.rglob("*") if f.is_file() and MARK.encode() in f.read_bytes()}
    assert {f.name for f in files_with_secrets} == {"endpoints.json"}
    assert {f.stat().st_mode & 0o077 for f in files_with_secrets} == {0}
    log_files = [f for f in yarn.logs.rglob("*") if f.is_file()]
    assert "launch_container.sh" in {f.name for f in log_files}
    assert [f for f in log_files if MARK in f.read_text(errors="replace") or s3.owner.secret_key in f.read_text()] == []
    assert MARK not in capfd.readouterr().out
    assert not list((tmp_path / "staging").rglob("*.json"))


def with_settings(archiver: Archiver, folder: Path) -> Archive:
    """Its archive with the endpoints in the YAML, and what this YARN wants to know."""
    endpoints = archiver._outside()
    conf = {
        "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
        "spark.yarn.stagingDir": (folder / "staging").as_uri(),
        "spark.pyspark.python": str(BIN / "python"),
        "spark.executor.instances": 1,
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.defaultJavaOptions": " ".join(quick.JAVA),
        "spark.executor.defaultJavaOptions": " ".join(quick.JAVA),
        "spark.ui.enabled": False,
    }
    configured = archiver.archive
    return configured.model_copy(
        update={
            "source": configured.source.model_copy(update={"kafka": dict(endpoints.kafka)}),
            "store": configured.store.model_copy(update={"aws": dict(endpoints.store)}),
            "spark": configured.spark.model_copy(update={"conf": conf}),
        }
    )

"""One run of the real archive job: plan, spark-submit (measured), verify, commit."""

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from bench.commands import measured
from bench.records import START
from bench.services import Services
from bench.usage import Usage
from kafka_archiver.config import Archive
from kafka_archiver.context.archive_context import Context
from kafka_archiver.driver.end_with_parent import TASK_PID
from kafka_archiver.jobs.archive import ArchiveJob
from kafka_archiver.jobs.endpoints import ENDPOINTS, Endpoints
from kafka_archiver.orchestration.submit.package import build_package
from kafka_archiver.orchestration.submit.spark_conf import java_settings, local_daemon
from kafka_archiver.values.intervals import Interval, from_ms
from kafka_archiver.work.commit import commit
from kafka_archiver.work.plan import plan
from kafka_archiver.work.verify import verify
from scripts.stack.class_data import class_data
from scripts.stack.java import find_java
from scripts.stack.paths import BIN, ROOT, SPARK_JARS
from scripts.stack.settings import spark_settings
from scripts.stack.spark_conf import spark_defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """The settings of the job.

    :param store: keys of the archive's section `store`. :param transform: those of its section `transform`.
    :param conf: further settings for spark-submit.
    :param reader: `source.reader`. :param master: of a cluster; None: local, with the cores.
    """

    cores: int
    store: Mapping[str, str | int]
    conf: Sequence[str]
    reader: str = "auto"
    master: str | None = None
    transform: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """The result of the job. `archive`: its name, which is also its folder. `size`: bytes stored."""

    archive: str
    records: int
    size: int
    objects: int
    usage: Usage


def archive(services: Services, topic: str, settings: JobSettings) -> JobRun:
    """Archive a topic from its beginning. :raises ArchiverError: the archive is not whole."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    archive = Archive.model_validate(
        {
            "archive": name,
            "source": {"topics": [topic], "reader": settings.reader},
            "transform": settings.transform,
            "store": {"url": f"s3://{services.s3.bucket}/{name}", **settings.store},
        }
    )
    endpoints = Endpoints({"bootstrap.servers": services.kafka.bootstrap_servers}, services.s3.options())
    context = Context.open(archive, endpoints)
    first = from_ms(START)
    interval = Interval(start=first, end=first + timedelta(hours=1))
    work = plan(context, interval, "scheduled")
    conf = services.directory / "spark-conf"
    for directory in (conf, services.directory / "tmp"):
        directory.mkdir(exist_ok=True)
    # Spark's settings of `make up`, with other directories.
    defaults = spark_defaults(sorted(SPARK_JARS.glob("*.jar")), class_data(find_java()))
    (conf / "spark-defaults.conf").write_text(defaults)
    master = settings.master or f"local[{settings.cores}]"
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.log.level=WARN"]
    package = build_package(services.directory)
    daemon = local_daemon({}, master, package)
    command += [part for pair in (*map("=".join, daemon.items()), *settings.conf) for part in ("--conf", pair)]
    command += ["--py-files", str(package)]
    command += [str(ROOT / "spark_jobs" / "archive.py"), ArchiveJob.of(archive, work.archive).to_argument()]
    environment = {
        **spark_settings(find_java()),
        **java_settings(
            "spark" if "where" in settings.transform else settings.reader, os.environ, services.directory / "tmp"
        ),
        "SPARK_CONF_DIR": str(conf),
        ENDPOINTS: endpoints.to_json(),
        TASK_PID: str(os.getpid()),
    }
    usage = measured(command, services.directory / f"{topic}.log", environment)
    verify(context, work.runs)
    commit(context, work.runs)
    manifest = context.ledger.manifest(work.runs[0])
    assert manifest is not None
    return JobRun(
        archive=name,
        records=manifest.rows,
        size=sum(o.bytes for o in manifest.objects),
        objects=len(manifest.objects),
        usage=usage,
    )

"""One run of the real archive job: plan, spark-submit (measured), verify, commit."""

import io
import os
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow.parquet as pq

from bench.cluster import Cluster
from bench.commands import measured
from bench.profile import Profile
from bench.records import START
from bench.services import Services
from bench.usage import Usage
from kafka_archiver.config import Archive
from kafka_archiver.driver.watchdog import TASK_PID
from kafka_archiver.formats.shared.compress import compressed
from kafka_archiver.intervals import Interval, from_ms
from kafka_archiver.job import ENDPOINTS, ArchiveJob, Endpoints
from kafka_archiver.orchestration.submit.jvm import java_settings
from kafka_archiver.steps.commit import commit
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import plan
from kafka_archiver.steps.verify import verify
from kafka_archiver.store import open_store
from scripts.stack.class_data import class_data
from scripts.stack.java import find_java
from scripts.stack.paths import BIN, ROOT, SPARK_JARS
from scripts.stack.settings import spark_settings
from scripts.stack.spark_conf import spark_defaults

# Stored bytes that are compared with zlib's, which takes 25 seconds a GB.
SAMPLE = 16 << 20
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """How the job is run.

    :param store: keys of the archive's section `store`.
    :param conf: what spark-submit is told besides.
    :param reader: `source.reader`.
    :param cluster: where Spark's tasks run; None: in the driver's JVM.
    """

    cores: int
    store: Mapping[str, str | int]
    conf: Sequence[str]
    reader: str = "auto"
    cluster: Cluster | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """What came of it. `url` and `keys`: where the objects are, until the bench's S3 server ends."""

    records: int
    size: int
    usage: Usage
    url: str = ""
    keys: tuple[str, ...] = ()

    @property
    def objects(self) -> int:
        """How many objects were written."""
        return len(self.keys)


def archive(services: Services, topic: str, settings: JobSettings, profile: Profile | None = None) -> JobRun:
    """Archive a topic from its beginning.

    :param profile: sample the job.
    :raises ArchiverError: the archive is not whole.
    """
    name = f"bench-{uuid.uuid4().hex[:8]}"
    archive = Archive.model_validate(
        {
            "archive": name,
            "source": {"topics": [topic], "reader": settings.reader},
            "store": {"url": f"s3://{services.s3.bucket}/{name}", **settings.store},
        }
    )
    endpoints = _endpoints(services)
    context = Context.open(archive, endpoints)
    first = from_ms(START)
    interval = Interval(start=first, end=first + timedelta(hours=1))
    work = plan(context, interval, "scheduled")
    conf = services.directory / "spark-conf"
    for directory in (conf, services.directory / "tmp"):
        directory.mkdir(exist_ok=True)
    # What `make up` gives to Spark, with other directories.
    defaults = spark_defaults(sorted(SPARK_JARS.glob("*.jar")), class_data(find_java()))
    (conf / "spark-defaults.conf").write_text(defaults)
    cluster = settings.cluster
    master = cluster.address if cluster else f"local[{settings.cores}]"
    command = [str(BIN / "spark-submit"), "--master", master, "--conf", "spark.log.level=WARN"]
    pairs = [f"{name}={value}" for name, value in cluster.conf.items()] if cluster else []
    command += [part for pair in (*pairs, *settings.conf) for part in ("--conf", pair)]
    command += [str(ROOT / "spark_jobs" / "archive.py"), ArchiveJob.of(archive, work.archive).to_argument()]
    environment = {
        **spark_settings(find_java()),
        **java_settings(settings.reader, os.environ, services.directory / "tmp"),
        "SPARK_CONF_DIR": str(conf),
        ENDPOINTS: endpoints.to_json(),
        TASK_PID: str(os.getpid()),
    }
    usage = measured(
        command, services.directory / f"{topic}.log", environment, profile, cluster.pids if cluster else ()
    )
    verify(context, work.runs)
    commit(context, work.runs)
    manifest = context.ledger.manifest(work.runs[0])
    assert manifest is not None
    return JobRun(
        records=manifest.rows,
        size=sum(o.bytes for o in manifest.objects),
        usage=usage,
        url=archive.store.url,
        keys=tuple(o.key for o in manifest.objects),
    )


def plain_parquet(services: Services, run: JobRun) -> int:
    """The bytes of the same tables, a file an object, as pyarrow's own settings for zstd make them."""
    store, size = open_store(run.url, _endpoints(services).store), 0
    for key in run.keys:
        written = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(store.get(key) or b"")), written, compression="zstd")
        size += len(written.getbuffer())
    return size


def beside_zlib(services: Services, run: JobRun) -> float:
    """The bytes of gzip as a multiple of what zlib makes at level 6 of the same lines: the first of an object."""
    stored = open_store(run.url, _endpoints(services).store).read(run.keys[0], 0, SAMPLE) or b""
    lines = zlib.decompressobj(_GZIP).decompress(stored)
    ours = compressed("gzip")
    return sum(map(len, [*ours.write(lines), *ours.finish()])) / len(zlib.compress(lines, 6, _GZIP))


def _endpoints(services: Services) -> Endpoints:
    return Endpoints(
        {"bootstrap.servers": services.kafka.bootstrap_servers},
        {
            "endpoint_url": services.s3.endpoint_url,
            "region_name": services.s3.region,
            "aws_access_key_id": services.s3.owner.access_key,
            "aws_secret_access_key": services.s3.owner.secret_key,
        },
    )

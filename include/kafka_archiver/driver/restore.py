"""The work of the job `restore`: one task for each target partition."""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.jobs.restore import RestoreJob
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.messages.errors import ArchiverError
from kafka_archiver.messages.progress import EVERY, PROGRESS
from kafka_archiver.model.restore import RestorePlan
from kafka_archiver.spark.unpacked import unpacked
from kafka_archiver.work.restore.step import (
    PartitionWork,
    frozen_plan,
    groups_of,
    progress_line,
    publish,
    published,
    require_cluster,
    require_verified,
    written_records,
)

log = logging.getLogger(__name__)


def run(job: RestoreJob, endpoints: Endpoints) -> None:
    """Do a step of the restore."""
    sys.path[:] = unpacked(sys.path, os.environ.get("SPARK_HOME", ""))
    from kafka_archiver.spark.engine import spark_context
    from kafka_archiver.spark.items import work_on

    work = PartitionWork(
        archive=job.archive,
        restore=job.restore,
        url=job.store,
        options=job.options(endpoints),
        endpoints=endpoints,
        allow=frozenset(job.allow),
    )
    ledger, cluster = work.ledger, Cluster(endpoints.kafka)
    plan = frozen_plan(ledger, job.restore)
    require_cluster(plan, cluster.cluster_id())
    targets = plan.targets()
    context = spark_context(job.archive)
    groups = groups_of(plan, context.defaultParallelism)
    if job.step == "verify":
        before = published(ledger, plan)
        report = publish(ledger, plan, list(chain.from_iterable(work_on(context, groups, work.verify))), before)
        records = sum(part.records for part in report.partitions)
        require_verified(report)
        log.info("verified: %s records in %d partitions are those of the archive", f"{records:,}", len(targets))
        return
    limits = plan.limits
    is_limited = limits.bytes_per_second or limits.records_per_second
    at_once = max(1, min(len(groups), context.defaultParallelism)) if is_limited else None
    if plan.schema_ids and not any(cluster.positions(plan.group, targets).values()):
        # Before the first write of any partition: what was written cannot be taken back.
        by_key = {topic.topic for topic in plan.topics if topic.partitioner != "same"}
        # Where keys choose the partition, one pass reads the records of all.
        passes = {group[0].topic if group[0].topic in by_key else group: group for group in groups}
        counts = work_on(context, list(passes.values()), work.check_frames)
        log.info("the schema ids of %s records are known", f"{sum(counts):,}")
    with telling(plan, cluster):
        work_on(context, groups, PartitionWork(**{**vars(work), "writers": at_once or 1}).write, at_once)


@contextmanager
def telling(plan: RestorePlan, cluster: Cluster) -> Iterator[None]:
    """Log the progress every few seconds, for the page: it is in the target, in the group's offsets."""
    began, ended, before = time.monotonic(), threading.Event(), list[int]()

    def look() -> None:
        try:
            positions = cluster.positions(plan.group, plan.targets())
        except ArchiverError as error:
            log.warning("the progress is not known: %s", error)
            return
        stamps = [position.stamp for position in positions.values() if position]
        if not before:
            before.append(written_records(plan, stamps))
        log.info("%s%s", PROGRESS, progress_line(plan, stamps, time.monotonic() - began, before[0]))

    def go_on_looking() -> None:
        look()
        while not ended.wait(EVERY):
            look()

    thread = threading.Thread(target=go_on_looking, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(60)
        look()

"""The steps of a restore after its plan: what the job does with the target's partitions, wherever that is."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from kafka_archiver.context.keyring import keyring_of
from kafka_archiver.jobs.endpoints import Endpoints
from kafka_archiver.kafka.target import KafkaTarget
from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import ConfigError, IntegrityError, PermanentError, TransientError
from kafka_archiver.messages.progress import remaining
from kafka_archiver.model.offset_map import OffsetMap
from kafka_archiver.model.restore import Inexact, RestorePlan, RestoreReport
from kafka_archiver.model.restore_progress import RestoreProgress
from kafka_archiver.store import open_store
from kafka_archiver.values.garbage_collector import seldom_collecting
from kafka_archiver.values.ranges import TopicPartition
from kafka_archiver.work.restore.lane import Lane
from kafka_archiver.work.restore.pace import Pace
from kafka_archiver.work.restore.partition_writer import PartitionWriter, StoppedError
from kafka_archiver.work.restore.together import write_together
from kafka_archiver.work.restore.verify import PartitionReader, Verified, verify_together

log = logging.getLogger(__name__)
Stop = Callable[[], bool]
Group = tuple[TopicPartition, ...]
# The most partitions of a pass: each has a producer, or a consumer, of its own.
TOGETHER = 8
# Differences that an error names.
_NAMED = 5


@dataclass(frozen=True)
class PartitionWork:
    """The work of a task on a target partition. Can be pickled.

    `url`, `options`: the store. `endpoints`: with the target's brokers. `writers`: how many work at the same time.
    """

    archive: str
    restore: str
    url: str
    options: Mapping[str, str]
    endpoints: Endpoints
    allow: frozenset[Inexact]
    writers: int = 1

    @property
    def ledger(self) -> Ledger:
        """The archive's ledger."""
        return Ledger(open_store(self.url, dict(self.options)), self.archive, keyring_of(self.endpoints))

    def lane(self, name: TopicPartition) -> Lane:
        """Return the records of a target partition."""
        ledger = self.ledger
        plan = frozen_plan(ledger, self.restore)
        return Lane(ledger, plan, name, frozenset({*plan.options.allow, *self.allow}))

    def check_frames(self, group: Group, stop: Stop) -> int:
        """Read the records of a group's first target partition, or all of the topic's if keys choose the partition.

        Check that each names a schema that is known. Return their number.

        :raises UnknownFrameError: one does not. Nothing was written yet.
        """
        return checked_frames(self.lane(group[0]), stop)

    def write(self, group: Group, stop: Stop) -> list[RestoreProgress]:
        lanes, target = list(map(self.lane, group)), KafkaTarget(self.endpoints.kafka)
        pace = Pace.share(lanes[0].plan.limits, self.writers)
        writers = [PartitionWriter(target, lane, pace, stop) for lane in lanes]
        with seldom_collecting():
            return write_together(writers) if len(writers) > 1 else [writers[0].run()]

    def verify(self, group: Group, _: Stop) -> list[Verified]:
        """Read target partitions back."""
        target = KafkaTarget(self.endpoints.kafka)
        readers = [PartitionReader(target, lane, time.sleep) for lane in map(self.lane, group)]
        with seldom_collecting():
            return list(verify_together(readers)) if len(readers) > 1 else [readers[0].run()]


def groups_of(plan: RestorePlan, tasks: int) -> list[Group]:
    """Return the target partitions that are worked on in one pass over the archive, for at least so many tasks.

    Where the source's partition decides, each is alone. Where keys decide, each pass reads the whole topic.
    """
    groups: list[Group] = []
    for topic in plan.topics:
        names = [name for name in plan.targets() if name.topic == topic.topic]
        fewest = max(tasks, -(-len(names) // TOGETHER))
        count = len(names) if topic.partitioner == "same" else min(len(names), fewest)
        groups += [tuple(names[number::count]) for number in range(count)]
    return groups


def checked_frames(lane: Lane, stop: Stop) -> int:
    """Return the number of a lane's records, once the schema ids of all of them were looked at."""
    count = 0
    for batch in lane.read():
        count += 0 if batch is None else batch.records.num_rows
        if stop():
            raise StoppedError(f"{lane.target}: stopped before the first record was written")
    return count


def frozen_plan(ledger: Ledger, restore: str) -> RestorePlan:
    """Return the plan of a restore.

    :raises ConfigError: it has none.
    """
    plan = ledger.restore_plan(restore)
    if plan is None:
        raise ConfigError(f"archive {ledger.archive} has no restore {restore!r}: its `plan` has not ended well")
    return plan


def require_cluster(plan: RestorePlan, current: str) -> None:
    """Check that the target is the one that was planned.

    :param current: the target's own id.
    :raises PermanentError: it is another cluster.
    """
    if current != plan.cluster_id:
        raise PermanentError(
            f"the target is cluster {current} now, and restore {plan.restore} was planned for {plan.cluster_id}: "
            "correct the Kafka connection, or give the restore another name"
        )


def progress_line(plan: RestorePlan, stamps: Collection[str], seconds: float, before: int) -> str:
    """Return a line about the progress of all partitions.

    :param stamps: the metadata of the group's offsets.
    :param before: records that were written when the step began, so many seconds ago.
    """
    progress = _progress(plan, stamps)
    records, size = written_records(plan, stamps), sum(part.bytes for part in progress)
    rate = (records - before) / seconds if seconds else 0.0
    most = "" if plan.exact else "at most "
    share = f" ({100 * records // plan.records} %)" if plan.records else ""
    left = f", {remaining(int((plan.records - records) / rate))} left" if rate > 0 and plan.records > records else ""
    return f"{records:,} of {most}{plan.records:,} records{share}, {size / 1e6:,.1f} MB, {rate:,.0f} records/s{left}"


def written_records(plan: RestorePlan, stamps: Collection[str]) -> int:
    """Return how many records are written, by the metadata of the group's offsets."""
    return sum(part.records for part in _progress(plan, stamps))


def _progress(plan: RestorePlan, stamps: Collection[str]) -> list[RestoreProgress]:
    return [part for stamp in stamps if (part := RestoreProgress.from_stamp(stamp)) and part.plan == plan.digest]


class Published(NamedTuple):
    """The map and the report of a restore before a verification began. `at`: when it began."""

    offsets: Stored[OffsetMap]
    report: Stored[RestoreReport]
    at: datetime


def published(ledger: Ledger, plan: RestorePlan) -> Published:
    """Return the documents that a verification replaces. Read them before the target."""
    return Published(ledger.restore_map(plan.restore), ledger.restore_report(plan.restore), datetime.now(UTC))


def publish(ledger: Ledger, plan: RestorePlan, results: Sequence[Verified], before: Published) -> RestoreReport:
    """Write the offset map and the report.

    :param before: read before the target was: who sleeps in between replaces no later verdict.
    :raises IntegrityError: the partitions together have another number of records than the manifests say.
    :raises TransientError: another process wrote them at the same moment.
    """
    order = {name: number for number, name in enumerate(plan.targets())}
    results = sorted(results, key=lambda result: order[result.report.name])
    reports = tuple(result.report for result in results)
    report = RestoreReport(
        archive=plan.archive,
        restore=plan.restore,
        plan_digest=plan.digest,
        at=before.at,
        verified=all(report.verified for report in reports),
        partitions=reports,
    )
    selected = sum(report.selected for report in reports)
    promised = plan.records + sum(source.lost for source in plan.sources)
    if plan.exact and selected != promised:
        raise IntegrityError(
            f"the manifests promise {promised:,} records of restore {plan.restore}, and the objects have "
            f"{selected:,}: run `airflow archive audit {plan.archive}`"
        )
    offsets = OffsetMap(
        archive=plan.archive,
        restore=plan.restore,
        plan_digest=plan.digest,
        cluster_id=plan.cluster_id,
        logs=tuple(log_map for result in results for log_map in result.maps),
    )
    # The map first: who finds a report that says `verified` finds the map of it.
    if not (ledger.replace_of_restore(offsets, before.offsets) and ledger.replace_of_restore(report, before.report)):
        raise TransientError("another process has verified this restore meanwhile; the next attempt looks again")
    return report


def require_verified(report: RestoreReport) -> None:
    """Check that everything is there.

    :raises IntegrityError: a partition differs.
    """
    if not report.verified:
        wrong = [part for part in report.partitions if not part.verified]
        named = "; ".join(part.difference or f"{part.name} differs" for part in wrong[:_NAMED])
        raise IntegrityError(
            f"restore {report.restore} is not verified: {len(wrong)} of {len(report.partitions)} partitions differ "
            f"from the archive: {named}"
        )

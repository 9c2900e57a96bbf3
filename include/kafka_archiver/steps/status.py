"""Status: how far the archive is, and how far behind."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.intervals import from_ms, hour_of
from kafka_archiver.manifest import Commit
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.context import Context


class PartitionStatus(Value):
    """One partition. `lag`: committed offsets of the log that are not archived yet (compacted ones included).

    `oldest_unarchived`: the time of the first record that waits; None when none does or it has no time.
    """

    topic: str
    partition: int
    committed: int | None
    archived_to: int | None
    log_start: int
    log_end: int
    lag: int
    oldest_unarchived: UtcTime | None


class ArchiveStatus(Value):
    """One archive: its partitions, its last commit, up to when its hours are complete, what is not finished."""

    archive: str
    partitions: tuple[PartitionStatus, ...]
    last_commit: Commit | None
    closed_until: UtcTime | None
    unfinished: tuple[str, ...]

    @property
    def lag(self) -> int:
        """Offsets that wait, over all partitions."""
        return sum(p.lag for p in self.partitions)

    @property
    def oldest_unarchived(self) -> datetime | None:
        """The time of the oldest record that waits."""
        return min((p.oldest_unarchived for p in self.partitions if p.oldest_unarchived), default=None)


def status(context: Context) -> ArchiveStatus:
    """Ask the ledger and the brokers. Reads one record of each partition that lags."""
    source, cluster = context.archive.source, context.cluster
    topics = cluster.topics(source.wanted)
    names = [name for topic in topics for name in topic.names]
    committed = cluster.committed(context.archive.group, names)
    starts, ends = cluster.log_starts(names), cluster.log_ends(names, source.isolation)
    progress = context.ledger.progress()
    runs = context.ledger.runs()
    settled = set(progress.runs) if progress else set()
    last = max((run for run, found in runs.items() if "commit" in found), default=None)

    def look(name: TopicPartition) -> PartitionStatus:
        known = progress.partition(name) if progress else None
        position = known.next if known and known.next is not None else committed[name]
        left = Range(max(starts[name], starts[name] if position is None else position), ends[name])
        first = cluster.first_timestamp(name, left) if left.size else None
        return PartitionStatus(
            topic=name.topic,
            partition=name.partition,
            committed=committed[name],
            archived_to=known.next if known else None,
            log_start=starts[name],
            log_end=ends[name],
            lag=left.size,
            oldest_unarchived=None if first is None or hour_of(first) is None else from_ms(first),
        )

    with ThreadPoolExecutor(8) as pool:
        partitions = tuple(pool.map(look, names))
    return ArchiveStatus(
        archive=context.archive.archive,
        partitions=partitions,
        last_commit=context.ledger.commit(last) if last else None,
        closed_until=progress.closed_until if progress else None,
        unfinished=tuple(run for run, found in runs.items() if "plan" in found and run not in settled),
    )

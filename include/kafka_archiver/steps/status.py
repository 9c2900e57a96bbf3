"""Status: how far the archive is, and how far behind."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.intervals import from_ms, hour_of, hour_start, to_ms
from kafka_archiver.keys import split_run
from kafka_archiver.manifest import Commit, Manifest
from kafka_archiver.proof import HourProof, Verdict
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import unfinished


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
    """One archive: its partitions, its last commit, up to when its hours are complete, what is not finished.

    `lost`: how many offsets were lost, ever.
    """

    archive: str
    partitions: tuple[PartitionStatus, ...]
    last_commit: Commit | None
    closed_until: UtcTime | None
    unfinished: tuple[str, ...]
    lost: int = 0

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
        unfinished=tuple(plan.run for plan in unfinished(context)),
        lost=progress.lost if progress else 0,
    )


class HourStatus(Value):
    """One hour. `status` is None when no run has looked at it yet; `dead_letters`: records, not objects."""

    hour_start: UtcTime
    status: Verdict | None
    rows: int
    bytes: int
    objects: int
    late_rows: int
    dead_letters: int
    complete_as_of: UtcTime | None
    closed_by: str | None


def last_hours(context: Context, count: int, now: datetime) -> list[HourStatus]:
    """The hours up to the one that it is now, oldest first."""
    present = hour_of(to_ms(now)) or 0
    hours = range(max(0, present - count + 1), present + 1)
    with ThreadPoolExecutor(8) as pool:
        proofs = list(pool.map(context.ledger.hour, hours))
        # Of each interval the revision that counts, where it touched these hours, or they are its own.
        counting = {run.partition("+")[0]: run for run, found in context.ledger.runs().items() if "commit" in found}
        touched = {run for p in proofs if p for run in (p.changed_by, p.closed_by, *(c.run for c in p.runs))}
        runs = [run for run in counting.values() if run in touched or split_run(run)[0] >= hour_start(hours[0])]
        manifests = [m for m in pool.map(context.ledger.manifest, runs) if m]
    return [_hour(hour, proof, manifests) for hour, proof in zip(hours, proofs, strict=True)]


def _hour(hour: int, proof: HourProof | None, manifests: list[Manifest]) -> HourStatus:
    return HourStatus(
        hour_start=hour_start(hour),
        status=proof.status if proof else None,
        rows=proof.rows if proof else 0,
        bytes=proof.bytes if proof else 0,
        objects=sum(len(c.objects) for c in proof.runs) if proof else 0,
        late_rows=proof.late_rows if proof else 0,
        dead_letters=sum(o.rows for m in manifests for o in m.dead_letters if o.hour == hour),
        complete_as_of=proof.complete_as_of if proof else None,
        closed_by=proof.closed_by if proof else None,
    )

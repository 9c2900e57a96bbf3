"""Status: the archive's progress and lag."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.line import Line, read_line
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.complete_hours import Verdict
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.object_keys import interval_of
from kafka_archiver.model.proof import HourProof
from kafka_archiver.planning.partition_state import PartitionState
from kafka_archiver.state.status.condition import condition, observe, waits
from kafka_archiver.state.status.facts import Facts
from kafka_archiver.values.documents import PartitionValue, UtcTime, Value
from kafka_archiver.values.intervals import from_ms, hour_of, hour_start, to_ms


class PartitionStatus(PartitionValue):
    """One partition. `lag`: committed offsets of the log that are not archived yet (compacted ones included).

    `gone`: offsets that Kafka removed before any run took them, and that no run has recorded as lost yet.

    `oldest_unarchived`: the time of the first record that waits; None if no record waits or the record has no time.
    """

    committed: int | None
    archived_to: int | None
    log_start: int
    log_end: int
    lag: int
    oldest_unarchived: UtcTime | None
    gone: int = 0


class ArchiveStatus(Value):
    """One archive. `troubles`: what is wrong, problems first. `accepted`: what a person has accepted of it."""

    partitions: tuple[PartitionStatus, ...]
    last_commit: Commit | None
    troubles: tuple[Finding, ...] = ()
    accepted: tuple[Finding, ...] = ()

    @property
    def lag(self) -> int:
        """The number of offsets that wait, over all partitions."""
        return sum(p.lag for p in self.partitions)

    @property
    def oldest_unarchived(self) -> datetime | None:
        """The time of the oldest record that waits."""
        return min((p.oldest_unarchived for p in self.partitions if p.oldest_unarchived), default=None)


def status(context: Context, facts: Facts) -> ArchiveStatus:
    """Ask the ledger and the brokers. Reads one record of each partition that lags.

    :param facts: what Airflow knows of the archive.
    """
    observed = observe(context)
    waiting, line = waits(context, observed), observed.line
    settled = {p.name: p for p in line.settled.partitions}
    first = context.cluster.first_records({name: left.start for name, left in waiting.items() if left.size})

    def look(state: PartitionState) -> PartitionStatus:
        name = state.name
        known, record = settled.get(name), first.get(name)
        planned = observed.known.get(name)
        taken = planned.next if planned and planned.next is not None else state.log_start
        has_time = record is not None and record.offset in waiting[name] and hour_of(record.timestamp) is not None
        return PartitionStatus(
            topic=name.topic,
            partition=name.partition,
            committed=state.committed,
            archived_to=known.next if known else None,
            log_start=state.log_start,
            log_end=state.log_end,
            lag=waiting[name].size,
            oldest_unarchived=from_ms(record.timestamp) if record and has_time else None,
            gone=max(state.log_start - taken, 0),
        )

    standing = condition(context, observed, facts)
    return ArchiveStatus(
        partitions=tuple(map(look, observed.partitions)),
        last_commit=last_commit(context.ledger, line),
        troubles=standing.open,
        accepted=standing.accepted,
    )


def last_commit(ledger: Ledger, line: Line) -> Commit | None:
    """Return the commit of the last committed run."""
    waiting = [w.commit for w in line.waiting if w.outcome == "committed"]
    if waiting:
        return waiting[-1]
    for number in range(line.settled.settled, 0, -1):
        plan = ledger.planned(number)
        commit = plan and ledger.commit(plan.run)
        if commit and commit.outcome == "committed":
            return commit
    return None


class HourStatus(Value):
    """One hour. `status` is None when no run has looked at it yet; `dead_letters`: records, not objects."""

    hour_start: UtcTime
    status: Verdict | None = None
    rows: int = 0
    bytes: int = 0
    objects: int = 0
    late_rows: int = 0
    dead_letters: int
    complete_as_of: UtcTime | None = None
    closed_by: str | None = None
    reason: str | None = None


# What the status of an hour has of its proof.
_OF_PROOF = {"status", "rows", "bytes", "objects", "late_rows", "complete_as_of", "closed_by", "reason"}


def last_hours(context: Context, count: int, moment: datetime) -> list[HourStatus]:
    """Return the last hours, oldest first, up to the present hour."""
    present = hour_of(to_ms(moment)) or 0
    hours = range(max(0, present - count + 1), present + 1)
    progress = context.ledger.progress()
    with ThreadPoolExecutor(8) as pool:
        proofs = list(pool.map(lambda hour: context.ledger.hour(hour, progress), hours))
        manifests = [m for m in pool.map(context.ledger.manifest, _runs_since(context, hours[0], proofs)) if m]
    return [_hour(hour, proof, manifests) for hour, proof in zip(hours, proofs, strict=True)]


def _runs_since(context: Context, hour: int, proofs: Iterable[HourProof | None]) -> list[str]:
    """Return the runs that touched these hours, and the runs planned since: of each the revision that counts."""
    line = read_line(context)
    plans = [w.plan for w in line.waiting]
    for number in range(line.settled.settled, 0, -1):
        plan = context.ledger.planned(number)
        if plan is None or plan.planned_at < hour_start(hour):
            break
        plans.append(plan)
    touched = {run for p in proofs if p for run in (p.changed_by, p.closed_by, *(c.run for c in p.runs)) if run}
    intervals = {interval_of(run) for run in (*touched, *(p.run for p in plans))}
    return [run for interval in sorted(intervals) if (run := context.ledger.last_committed(interval))]


def _hour(hour: int, proof: HourProof | None, manifests: list[Manifest]) -> HourStatus:
    return HourStatus(
        hour_start=hour_start(hour),
        dead_letters=sum(o.rows_in(hour) for m in manifests for o in m.dead_letters),
        **(proof.model_dump(include=_OF_PROOF) if proof else {}),
    )

"""Proofs and progress: what the committed manifests say about hours and partitions. Pure, and derived:

every document here can be recomputed from the plans and manifests of the committed runs.
"""

from collections.abc import Iterable
from typing import Literal, Self

from kafka_archiver.documents import Document, UtcTime, Value
from kafka_archiver.intervals import MS_PER_HOUR, hour_start, to_ms
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import OffsetRange, Plan
from kafka_archiver.ranges import Range, TopicPartition, merge


class ProofObject(Value):
    """One object of an hour."""

    key: str
    rows: int
    bytes: int
    checksum: str


class Contribution(Value):
    """What one run added to an hour. `late`: the hour was complete already when it came."""

    run: str
    late: bool
    rows: int
    objects: tuple[ProofObject, ...]


class HourProof(Document):
    """The verdict on one hour. `hour_start` is null for the records without a usable time.

    `complete_as_of`: when the closing run was planned; every record that Kafka held then with a time in this hour,
    at the place its time index gives the hour's end, is in `runs`. Records that came later are marked late.
    """

    document: Literal["kafka-archiver/hour"] = "kafka-archiver/hour"
    version: Literal[1] = 1
    archive: str
    hour_start: UtcTime | None
    status: Literal["open", "complete"]
    complete_as_of: UtcTime | None = None
    closed_by: str | None = None
    changed_by: str
    rows: int
    bytes: int
    late_rows: int
    runs: tuple[Contribution, ...]

    @property
    def hour(self) -> int | None:
        """The hour, in whole hours since 1970."""
        return None if self.hour_start is None else to_ms(self.hour_start) // MS_PER_HOUR


def prove(hour: int | None, before: HourProof | None, plan: Plan, manifest: Manifest, closes: bool) -> HourProof:
    """The hour's proof once this run's manifest is taken in; proving the same run again changes nothing.

    :param closes: whether this run is (at the latest) the one that completes the hour.
    """
    known = {c.run: c for c in before.runs} if before else {}
    was_complete = before is not None and before.status == "complete"
    objects = tuple(
        ProofObject(key=o.key, rows=o.rows, bytes=o.bytes, checksum=o.checksum)
        for o in manifest.objects
        if o.hour == hour
    )
    if objects:
        seen = known.get(plan.run)
        known[plan.run] = Contribution(
            run=plan.run,
            late=seen.late if seen else was_complete,
            rows=sum(o.rows for o in objects),
            objects=objects,
        )
    closing = closes and not was_complete
    changed = before is None or closing or tuple(known.values()) != before.runs
    runs = tuple(known[run] for run in sorted(known))
    return HourProof(
        archive=plan.archive,
        hour_start=None if hour is None else hour_start(hour),
        status="complete" if closes or was_complete else "open",
        complete_as_of=plan.planned_at if closing else before.complete_as_of if before else None,
        closed_by=plan.run if closing else before.closed_by if before else None,
        changed_by=plan.run if changed or before is None else before.changed_by,
        rows=sum(c.rows for c in runs),
        bytes=sum(o.bytes for c in runs for o in c.objects),
        late_rows=sum(c.rows for c in runs if c.late),
        runs=runs,
    )


class PartitionProgress(Value):
    """What settled runs have done with a partition. `next`: where the next scheduled run starts, if one ever ran."""

    topic: str
    topic_id: str
    partition: int
    generation: int = 0
    next: int | None = None
    covered: tuple[OffsetRange, ...] = ()

    @property
    def name(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)


class Progress(Document):
    """The summary of all settled runs: those committed whose hours have been proved.

    `complete_from`: scheduled runs complete no hour before it, since the archive began in the middle of the log.
    `closed_until`: every hour from there on that ends by then is complete. `open_hours`: hours (whole hours since
    1970) that have objects and are not complete yet.
    """

    document: Literal["kafka-archiver/progress"] = "kafka-archiver/progress"
    version: Literal[1] = 1
    archive: str
    complete_from: UtcTime | None = None
    closed_until: UtcTime | None = None
    open_hours: tuple[int, ...] = ()
    runs: tuple[str, ...] = ()
    partitions: tuple[PartitionProgress, ...] = ()

    def partition(self, name: TopicPartition) -> PartitionProgress | None:
        """What is known of one partition."""
        return next((p for p in self.partitions if p.name == name), None)

    def after(self, plan: Plan, open_hours: Iterable[int] = ()) -> Self:
        """The progress once this run is settled too; settling it again changes nothing."""
        known = {p.name: p for p in self.partitions}
        for planned in plan.partitions:
            before = known.get(planned.name)
            same = before is not None and before.generation == planned.generation
            covered = merge(
                [Range(*r) for r in before.covered] * same + [Range(*r) for r in planned.ranges + planned.lost]
                if before
                else [Range(*r) for r in planned.ranges + planned.lost]
            )
            position = before.next if before and same else None
            if plan.moves_group:
                position = max(planned.end, position or 0)
            known[planned.name] = PartitionProgress(
                topic=planned.topic,
                topic_id=planned.topic_id,
                partition=planned.partition,
                generation=planned.generation,
                next=position,
                covered=covered,
            )
        return type(self)(
            archive=self.archive,
            complete_from=complete_from(self, plan),
            closed_until=closed_until(self, plan),
            open_hours=tuple(sorted(open_hours)),
            runs=tuple(sorted({*self.runs, plan.run})),
            partitions=tuple(known[name] for name in sorted(known)),
        )


def closed_until(progress: Progress, plan: Plan) -> UtcTime | None:
    """Up to when hours are complete once this plan is committed.

    Only scheduled runs move it: they cover the log from where the last one stopped. A backfill completes its own hours.
    """
    if not (plan.moves_group and closes(plan)):
        return progress.closed_until
    return max(filter(None, (progress.closed_until, plan.interval.end)))


def complete_from(progress: Progress, plan: Plan) -> UtcTime | None:
    """From when on hours can be completed by scheduled runs; None: from the beginning."""
    return max(filter(None, [progress.complete_from, *(p.complete_from for p in plan.partitions)]), default=None)


def closes(plan: Plan) -> bool:
    """Whether the plan takes everything that Kafka's time index puts before the end of its interval."""
    return bool(plan.partitions) and all(p.closes for p in plan.partitions)


def hours_between(start: UtcTime, end: UtcTime) -> range:
    """The whole hours inside `[start, end)`."""
    return range(-(-to_ms(start) // MS_PER_HOUR), to_ms(end) // MS_PER_HOUR)


def hours_to_prove(progress: Progress, plan: Plan, manifest: Manifest) -> dict[int | None, bool]:
    """The hours whose proof this run may change, and whether it completes each.

    These are the hours its objects are in, the hours of its interval, and whatever was open before and is not any more.
    """
    until, since = closed_until(progress, plan), complete_from(progress, plan)
    own = set(hours_between(plan.interval.start, plan.interval.end)) if closes(plan) else set()
    # Hours that end in between, also where intervals begin and end in the middle of hours.
    passed = (
        range(to_ms(progress.closed_until) // MS_PER_HOUR, to_ms(until) // MS_PER_HOUR)
        if progress.closed_until and until
        else range(0)
    )
    hours: dict[int | None, bool] = {}
    for hour in {o.hour for o in manifest.objects} | own | set(passed) | set(progress.open_hours):
        # A backfill takes all of its interval; scheduled runs have all since the archive began.
        whole = hour is not None and (since is None or hour * MS_PER_HOUR >= to_ms(since))
        past = hour in own or (hour is not None and until is not None and (hour + 1) * MS_PER_HOUR <= to_ms(until))
        hours[hour] = (hour in own and not plan.moves_group) or (whole and past)
    return hours

"""Proofs and progress: what the committed manifests say about hours and partitions. Pure, and derived:

every document here can be recomputed from the plans and manifests of the committed runs.
"""

from collections.abc import Iterable
from typing import Literal, Self

from kafka_archiver.documents import Document, UtcTime, Value
from kafka_archiver.intervals import MS_PER_HOUR, hour_start, to_ms
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import OffsetRange, PartitionPlan, Plan
from kafka_archiver.ranges import Range, TopicPartition, merge, subtract


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


# open: more may come. complete: nothing is missing. incomplete: it is past, and what it lacks will not come by itself.
Verdict = Literal["open", "complete", "incomplete"]


class HourProof(Document):
    """The verdict on one hour. `hour_start` is null for the records without a usable time.

    `complete_as_of`: when the closing run was planned; every record that Kafka held then with a time in this hour,
    at the place its time index gives the hour's end, is in `runs`. Records that came later are marked late.
    """

    document: Literal["kafka-archiver/hour"] = "kafka-archiver/hour"
    version: Literal[1] = 1
    archive: str
    hour_start: UtcTime | None
    status: Verdict
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


def prove(hour: int | None, before: HourProof | None, plan: Plan, manifest: Manifest, verdict: Verdict) -> HourProof:
    """The hour's proof once this run's manifest is taken in; proving the same run again changes nothing.

    :param verdict: of `hours_to_prove`. What is complete stays so, and what is incomplete can only become complete.
    """
    known = {c.run: c for c in before.runs} if before else {}
    superseded = known.pop(plan.supersedes, None) if plan.supersedes else None
    was = before.status if before else "open"
    objects = tuple(
        ProofObject(key=o.key, rows=o.rows, bytes=o.bytes, checksum=o.checksum)
        for o in manifest.objects
        if o.hour == hour
    )
    if objects:
        seen = known.get(plan.run) or superseded
        known[plan.run] = Contribution(
            run=plan.run,
            late=seen.late if seen else was == "complete",
            rows=sum(o.rows for o in objects),
            objects=objects,
        )
    closing = verdict == "complete" != was
    runs = tuple(known[run] for run in sorted(known))
    changed = before is None or closing or runs != before.runs
    return HourProof(
        archive=plan.archive,
        hour_start=None if hour is None else hour_start(hour),
        status=was if verdict == "open" or was == "complete" else verdict,
        complete_as_of=plan.planned_at if closing else before.complete_as_of if before else None,
        closed_by=plan.run if closing else before.closed_by if before else None,
        changed_by=plan.run if changed or before is None else before.changed_by,
        rows=sum(c.rows for c in runs),
        bytes=sum(o.bytes for c in runs for o in c.objects),
        late_rows=sum(c.rows for c in runs if c.late),
        runs=runs,
    )


class PartitionProgress(Value):
    """What settled runs have done with a partition's present generation.

    `next`: where the next scheduled run starts, if one ever ran. `lost`: of the offsets covered, those that were lost.
    `earlier`: what generations before have of the same log, without what the group was wound back over.
    """

    topic: str
    topic_id: str
    partition: int
    generation: int = 0
    next: int | None = None
    covered: tuple[OffsetRange, ...] = ()
    lost: tuple[OffsetRange, ...] = ()
    earlier: tuple[OffsetRange, ...] = ()

    @property
    def name(self) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topic, self.partition)

    def left_behind(self, start: int) -> tuple[Range, ...]:
        """What a generation that begins at `start` in the same log leaves to this one and those before."""
        again = [Range(start, max(start, self.next or 0))]
        return merge(left for r in self.covered + self.earlier for left in subtract(Range(*r), again))


class Progress(Document):
    """The summary of all settled runs: those committed whose hours have been proved.

    `complete_from`: scheduled runs complete no hour before it, since the archive began in the middle of the log.
    `unsure_until`: nobody completes an hour before it that was not complete already, since records were lost or a log
    was given up. `lost`: how many offsets were lost, ever.
    `closed_until`: every hour from there on that ends by then is complete. `open_hours`: hours (whole hours since
    1970) that have objects and are not complete yet.
    """

    document: Literal["kafka-archiver/progress"] = "kafka-archiver/progress"
    version: Literal[1] = 1
    archive: str
    complete_from: UtcTime | None = None
    unsure_until: UtcTime | None = None
    closed_until: UtcTime | None = None
    open_hours: tuple[int, ...] = ()
    lost: int = 0
    runs: tuple[str, ...] = ()
    partitions: tuple[PartitionProgress, ...] = ()

    def partition(self, name: TopicPartition) -> PartitionProgress | None:
        """What is known of one partition."""
        return next((p for p in self.partitions if p.name == name), None)

    def is_new(self, plan: Plan) -> bool:
        """Whether it is a run whose offsets are not in here yet: neither one settled before, nor a rebuild."""
        return plan.run not in self.runs and plan.supersedes is None

    def after(self, plan: Plan, manifest: Manifest | None = None, open_hours: Iterable[int] = ()) -> Self:
        """The progress once this run is settled too; settling it again changes nothing.

        :param manifest: what it wrote; None as long as it is not known.
        """
        known = {p.name: p for p in self.partitions}
        lost = _lost(manifest)
        for planned in plan.partitions:
            before = known.get(planned.name)
            if before and before.generation > planned.generation:
                # A run of a log that was given up since.
                continue
            same = before if before and before.generation == planned.generation else None
            position = same.next if same else None
            if plan.moves_group:
                position = max(planned.end, position or 0)
            known[planned.name] = PartitionProgress(
                topic=planned.topic,
                topic_id=planned.topic_id,
                partition=planned.partition,
                generation=planned.generation,
                next=position,
                covered=_merged(same.covered if same else (), planned.ranges, planned.lost),
                lost=_merged(same.lost if same else (), planned.lost, lost.get(planned.name, ())),
                earlier=_earlier(before, planned),
            )
        unsure = unsure_until(self, plan, manifest)
        return type(self)(
            archive=self.archive,
            complete_from=complete_from(self, plan, unsure),
            unsure_until=unsure,
            closed_until=closed_until(self, plan),
            open_hours=tuple(sorted(open_hours)),
            lost=self.lost + (manifest.account["lost"] if manifest and self.is_new(plan) else 0),
            runs=tuple(sorted({*self.runs, plan.run})),
            partitions=tuple(known[name] for name in sorted(known)),
        )


def _earlier(before: PartitionProgress | None, planned: PartitionPlan) -> tuple[OffsetRange, ...]:
    if before is None or planned.anew:
        return ()
    return before.earlier if before.generation == planned.generation else before.left_behind(planned.start)


def _merged(*lists: Iterable[OffsetRange]) -> tuple[Range, ...]:
    return merge(Range(*r) for ranges in lists for r in ranges)


def _lost(manifest: Manifest | None) -> dict[TopicPartition, list[OffsetRange]]:
    found: dict[TopicPartition, list[OffsetRange]] = {}
    for account in manifest.chunks if manifest else ():
        if account.lost:
            found.setdefault(account.chunk.name, []).extend(account.lost_ranges)
    return found


def closed_until(progress: Progress, plan: Plan) -> UtcTime | None:
    """Up to when hours are complete once this plan is committed.

    Only scheduled runs move it: they cover the log from where the last one stopped. A backfill completes its own hours.
    """
    if not (plan.moves_group and closes(plan)):
        return progress.closed_until
    return max(filter(None, (progress.closed_until, plan.interval.end)))


def complete_from(progress: Progress, plan: Plan, unsure: UtcTime | None) -> UtcTime | None:
    """From when on hours can be completed by scheduled runs; None: from the beginning.

    :param unsure: what `unsure_until` says.
    """
    begins = (p.complete_from for p in plan.partitions)
    return max(filter(None, [progress.complete_from, unsure, *begins]), default=None)


def unsure_until(progress: Progress, plan: Plan, manifest: Manifest | None) -> UtcTime | None:
    """Up to when hours may lack records that nobody can bring back; None: none does."""
    known = [progress.unsure_until, *(p.complete_from for p in plan.partitions if p.anew)]
    if manifest and progress.is_new(plan):
        known += [_whole_after(plan, manifest, name, ranges) for name, ranges in _lost(manifest).items()]
    return max(filter(None, known), default=None)


def _whole_after(plan: Plan, manifest: Manifest, name: TopicPartition, lost: list[OffsetRange]) -> UtcTime:
    """The first hour that cannot lack what was lost: behind all hours of the first chunk behind the loss.

    Nobody knows the times of lost records; by Kafka's order they were no later than what followed them, nor than now.
    A single record's time may be any.
    """
    end = max(end for _, end in lost)
    behind = [o for o in manifest.objects if (o.topic, o.partition) == name and o.first_offset >= end]
    first = min((o.chunk_start for o in behind), default=None)
    now = to_ms(plan.planned_at) // MS_PER_HOUR
    hours = [o.hour for o in behind if o.chunk_start == first and o.hour is not None]
    return hour_start(min(now, max(hours, default=now)) + 1)


def closes(plan: Plan) -> bool:
    """Whether the plan takes everything that Kafka's time index puts before the end of its interval."""
    return bool(plan.partitions) and all(p.closes for p in plan.partitions)


def hours_between(start: UtcTime, end: UtcTime) -> range:
    """The whole hours inside `[start, end)`."""
    return range(-(-to_ms(start) // MS_PER_HOUR), to_ms(end) // MS_PER_HOUR)


def hours_to_prove(
    progress: Progress, plan: Plan, manifest: Manifest, superseded: Manifest | None = None
) -> dict[int | None, Verdict]:
    """The hours whose proof this run may change, and what it makes of each.

    These are the hours its objects are in, the hours of its interval, whatever was open before and is not any more,
    and the hours of the manifest that it supersedes.
    """
    unsure = unsure_until(progress, plan, manifest)
    until, since = closed_until(progress, plan), complete_from(progress, plan, unsure)
    own = set(hours_between(plan.interval.start, plan.interval.end)) if closes(plan) else set()
    # Hours that end in between, also where intervals begin and end in the middle of hours.
    passed = (
        range(to_ms(progress.closed_until) // MS_PER_HOUR, to_ms(until) // MS_PER_HOUR)
        if progress.closed_until and until
        else range(0)
    )
    touched = {o.hour for o in manifest.objects + (superseded.objects if superseded else ())}
    hours: dict[int | None, Verdict] = {}
    for hour in touched | own | set(passed) | set(progress.open_hours):
        # Scheduled runs have all since the archive began; a backfill takes all of its interval, as far as Kafka has it.
        whole = hour is not None and (since is None or hour * MS_PER_HOUR >= to_ms(since))
        sure = hour is not None and (unsure is None or hour * MS_PER_HOUR >= to_ms(unsure))
        past = hour in own or (hour is not None and until is not None and (hour + 1) * MS_PER_HOUR <= to_ms(until))
        if (hour in own and not plan.moves_group and sure) or (whole and past):
            hours[hour] = "complete"
        else:
            hours[hour] = "incomplete" if past else "open"
    return hours

"""Losses, and the hours that they leave unsure. Pure."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.settings import EventTime
from kafka_archiver.values.documents import PartitionValue, UtcTime, Value, unwritten
from kafka_archiver.values.gaps import OffsetRange, count, unpack
from kafka_archiver.values.intervals import LAST_MS, MS_PER_HOUR, from_ms, hour_after, hour_start, to_hour
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

# Of plans with the first rules: how many records behind a loss were asked for its time.
_FIRST_RECORDS = 10
# The later clock of a plan whose clocks agree: they differ by two seconds at most, and the store's has whole seconds.
_CLOCKS = timedelta(seconds=3)
# Partitions that a reason names: each incomplete hour's proof has it.
_NAMED = 50


class UnprovableMarks(NamedTuple):
    """Marks from before `by`, and marks of planners up to place `number` of the line, cannot be proved any more.

    Both exclude the same marks as long as clocks do not go back.
    """

    by: datetime | None
    number: int = 0


class LeftOutOffsets(PartitionValue):
    """Offsets of a log. All of their records that Kafka had at planning have a time before `than`.

    `arrived`: they had arrived by then, and are filed by a time that Kafka's index does not know.
    """

    ranges: tuple[OffsetRange, ...]
    than: UtcTime
    arrived: bool = unwritten(False)

    def holds_for(self, time: EventTime) -> bool:
        """Return True if this says something of records that are filed by that time."""
        return self.arrived != time.is_known_to_kafka


class Unsure(Value):
    """The time until which hours may lack lost records, and the reason."""

    until: UtcTime
    reason: str


class IfOrdered(Unsure):
    """The same, if no record is more than so many milliseconds older than an earlier one of its partition."""

    disorder_ms: int


class Loss(NamedTuple):
    """The hours that one loss leaves unsure. `if_ordered`: an earlier end of that, by what the plan assumes; None:
    none. `is_recorded`: its offsets are in the run's account, so that a person can accept it by name.
    """

    unsure: Unsure
    if_ordered: datetime | None = None
    is_recorded: bool = False


def assumption_of(disorder_ms: int) -> str:
    """Return an assumption about the order of times, as proofs name it."""
    return f"no record is more than {disorder_ms / 1000:g} s older than an earlier one of its partition"


def if_ordered(
    before: Unsure | None, assumed: IfOrdered | None, new: Sequence[Loss], limit_ms: int | None, disorder_ms: int
) -> IfOrdered | None:
    """Return until when hours may lack lost records by what the archive assumes; None: that is no earlier time.

    :param before: what earlier losses leave unsure without an assumption.
    :param assumed: the same with the assumption.
    :param new: the losses of one more run. :param limit_ms: what its plan assumes.
    :param disorder_ms: what is known of the order by now.
    """
    shorter = [Unsure(until=loss.if_ordered or loss.unsure.until, reason=loss.unsure.reason) for loss in new]
    latest = latest_of([assumed or before, *shorter])
    strict = latest_of([before, *(loss.unsure for loss in new)])
    limits = [assumed.disorder_ms] if assumed else []
    if limit_ms is not None and any(loss.if_ordered for loss in new):
        limits.append(limit_ms)
    if latest is None or strict is None or latest.until >= strict.until or not limits or disorder_ms > min(limits):
        return None
    return IfOrdered(until=latest.until, reason=latest.reason, disorder_ms=min(limits))


def latest_of(unsure: Iterable[Unsure | None]) -> Unsure | None:
    """Return the one that leaves most hours unsure."""
    return max(filter(None, unsure), key=lambda each: each.until, default=None)


def gone_by(
    before: datetime | None,
    known: Container[TopicPartition],
    plan: Plan,
    manifest: Manifest | None,
    superseded: Manifest | None,
    ended: datetime | None,
) -> UnprovableMarks:
    """The time until which Kafka may have had records that no run ever read.

    Losses that a planner finds happened before its later clock; losses that an attempt finds, before its run ended.

    :param before: the result without this run.
    :param known: partitions that earlier runs have seen.
    """
    moments, number = [before], 0
    if any(p.lost or p.cut or p.anew or (p.log_start and p.name not in known) for p in plan.partitions):
        moments.append(plan.at_latest or plan.planned_at)
        number = plan.number - 1
    if any(p.older and p.older[0][0] < p.log_start for p in plan.partitions):
        # Earlier planners may have seen what is gone of that.
        number = plan.number - 1
    known_lost = _unknown(superseded) if superseded else sum(chunk.range.size for chunk in plan.lost_chunks())
    if manifest and _unknown(manifest) > known_lost:
        moments.append(ended)
        number = plan.number
    return UnprovableMarks(max(filter(None, moments), default=None), number)


def _unknown(manifest: Manifest) -> int:
    """The number of lost offsets with unknown records: all but those of lost objects."""
    return sum(count(unpack(a.start, a.end, a.lost_ranges)) for a in manifest.chunks if a.lost_ranges)


def losses(
    plan: Plan,
    manifest: Manifest | None,
    superseded: Manifest | None,
    ended: datetime | None,
    begun: Mapping[TopicPartition, int],
    taken: Mapping[TopicPartition, int],
    left_out: Mapping[TopicPartition, LeftOutOffsets],
    added: Container[TopicPartition] = (),
) -> Iterator[Loss]:
    """Return the losses that this run adds, with the times that they leave unsure.

    A record that is gone may have had any time up to the moment at which it was known to be gone: that moment ends the
    unsure time, unless something exact is known of the lost offsets.

    :param ended: when the run ended, by the later clock; None: it has not ended.
    :param begun: logs that this plan is the first to see, by their first offset, if that is not 0.
    :param taken: logs that a plan with the first rules saw first, and whose first offset this run is the first to take.
    :param left_out: what was known of offsets that are not archived, before this run.
    :param added: partitions that begin anew, but only because their topic was made again earlier with fewer.
    """
    planned = _planned_at_latest(plan)
    for partition in plan.partitions:
        if partition.anew and partition.name not in added:
            reason = f"topic {partition.topic} began anew when run {plan.run} was planned; nobody knows what it had had"
            yield Loss(Unsure(until=hour_after(planned if plan.loss_rules == 2 else plan.planned_at), reason=reason))
        elif offset := begun.get(partition.name):
            reason = (
                f"the log of {partition.name} began at offset {offset}, not at 0, when the archive began; nobody knows "
                "the times of the records before"
            )
            until = hour_after(_earliest(planned, partition))
            yield Loss(Unsure(until=until, reason=reason), _by_order(plan, manifest, partition.name, offset))
        if partition.cut and plan.loss_rules == 2:
            reason = f"the log of {partition.name} was cut before run {plan.run}: records that no run has are gone"
            yield Loss(Unsure(until=hour_after(planned), reason=reason))
    if manifest is None:
        return
    for name, offset in taken.items():
        reason = f"the log of {name} began at offset {offset}, not at 0, when the archive began"
        until = hour_after(planned) if plan.loss_rules == 2 else _first_whole_hour(plan, manifest, name, offset)
        yield Loss(Unsure(until=until, reason=reason))
    # Objects that a repair has lost are known by name, so only ranges count here.
    known = {str(account): account.lost_ranges for account in superseded.chunks} if superseded else {}
    lost: dict[TopicPartition, list[Range]] = {}
    for account in manifest.chunks:
        if account.lost_ranges and account.lost_ranges != known.get(str(account)):
            rows = unpack(account.start, account.end, account.lost_ranges).tolist()
            lost.setdefault(account.name, []).extend(Range(*row) for row in rows)
    named = [f"{name} before {max(r.end for r in ranges)}" for name, ranges in sorted(lost.items())]
    more = f" and of {len(named) - _NAMED} more partitions" if len(named) > _NAMED else ""
    reason = f"offsets of {', '.join(named[:_NAMED])}{more} were lost (run {plan.run})"
    partitions = {partition.name: partition for partition in plan.partitions}
    for name, ranges in lost.items():
        partition, older = partitions[name], left_out.get(name)
        if plan.loss_rules == 1:
            until = _first_whole_hour(plan, manifest, name, max(r.end for r in ranges))
            until = max(until, older.than) if older else until
            yield Loss(Unsure(until=until, reason=reason), is_recorded=True)
            continue
        at_planning = not any(subtract(each, (Range(*r) for r in partition.lost)) for each in ranges)
        moment = _earliest(planned, partition) if at_planning else ended or planned
        latest = hour_after(moment) if plan.hour_rules >= 4 else None
        by_same_time = older and (plan.hour_rules < 3 or older.holds_for(plan.settings.time))
        if older and by_same_time and not any(subtract(each, (Range(*r) for r in older.ranges)) for each in ranges):
            # Kafka's time index knew them when they were still there.
            yield Loss(Unsure(until=min(older.than, latest or older.than), reason=reason), is_recorded=True)
            continue
        # By earlier rules, also until the times after now that left-out ones may have, as they may be among these.
        until = latest or max(hour_after(moment), older.than if older else hour_after(moment))
        shorter = _by_order(plan, manifest, name, max(r.end for r in ranges))
        yield Loss(Unsure(until=until, reason=reason), shorter, is_recorded=True)


def unsure_by_plan(plan: Plan) -> UtcTime | None:
    """Return the time before which hours can no longer become complete by what a plan records as lost; None: nothing.

    Without what the plan may assume about the order of times: with that, it may be earlier.
    """
    planned = _planned_at_latest(plan)
    moments = [planned for partition in plan.partitions if partition.anew or partition.cut]
    moments += [_earliest(planned, partition) for partition in plan.partitions if partition.lost]
    return hour_after(max(moments)) if moments else None


def hour_after_plan(plan: Plan) -> UtcTime:
    """Return the first hour that begins after a plan was made, by the later clock."""
    return hour_after(_planned_at_latest(plan))


def _planned_at_latest(plan: Plan) -> datetime:
    """Return when a plan was made, by the later clock; one of an earlier release knows only the planner's."""
    return plan.at_latest or plan.planned_at + _CLOCKS


def not_archived_any_more(plan: Plan, older: LeftOutOffsets) -> Loss:
    """Return what is left out of a topic that the plan does not archive, as a loss: it is of no hour to come."""
    name = older.name
    reason = f"{name} is not archived any more since run {plan.run}, and the archive does not have all of it"
    return Loss(Unsure(until=hour_after_plan(plan), reason=reason))


def _earliest(planned: datetime, partition: PartitionPlan) -> datetime:
    """Return a moment by which everything that the plan calls lost had been appended."""
    return min(planned, partition.appended_by or planned)


def _by_order(plan: Plan, manifest: Manifest | None, name: TopicPartition, offset: int) -> UtcTime | None:
    """Return the hour before which, by what the plan assumes, everything before an offset is; None: nothing is known.

    A record that was lost is at most that much newer than any record behind it.
    """
    if plan.ordered_within_ms is None or manifest is None:
        return None
    times = [o.min_timestamp for o in manifest.stored if (o.topic, o.partition) == name and o.first_offset >= offset]
    lasts = [a.last for a in manifest.chunks if a.name == name and a.last and a.last.offset >= offset]
    known = [time for time in (*times, *(last.timestamp for last in lasts)) if time >= 0]
    latest = min(known) + plan.ordered_within_ms if known else LAST_MS
    return hour_after(from_ms(latest)) if latest < LAST_MS - MS_PER_HOUR else None


def _first_whole_hour(plan: Plan, manifest: Manifest, name: TopicPartition, offset: int) -> UtcTime:
    """Return the first hour after the hours of the first records behind an offset: the rule of older plans."""
    planned_hour = to_hour(plan.planned_at)
    entries = [o for o in manifest.stored if (o.topic, o.partition) == name and o.first_offset >= offset]
    begin = min((o.first_offset for o in entries), default=0)
    if plan.settings.time.source != "record":
        return hour_start(planned_hour + 1)
    hours = {hour for o in entries if o.first_offset < begin + _FIRST_RECORDS for hour in o.hours}
    return hour_start(
        max((hour for hour in hours if hour is not None and hour <= planned_hour), default=planned_hour) + 1
    )

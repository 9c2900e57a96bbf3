"""Losses, and the hours that they leave unsure. Pure."""

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.gaps import count, unpack
from kafka_archiver.intervals import hour_start, to_hour
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition

# How many offsets behind a loss are asked for the time of the loss.
FIRST_RECORDS = 10
# Partitions that a reason names: each incomplete hour's proof has it.
_NAMED = 50


class Gone(NamedTuple):
    """Marks from before `by`, and marks of planners up to place `number` of the line, cannot be proved any more.

    Both exclude the same marks as long as clocks do not go back.
    """

    by: datetime | None
    number: int = 0


class Unsure(Value):
    """The time until which hours may lack lost records, and the reason."""

    until: UtcTime
    reason: str


def gone_by(
    before: datetime | None,
    known: Container[TopicPartition],
    plan: Plan,
    manifest: Manifest | None,
    superseded: Manifest | None,
    ended: datetime | None,
) -> Gone:
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
    return Gone(max(filter(None, moments), default=None), number)


def _unknown(manifest: Manifest) -> int:
    """The number of lost offsets with unknown records: all but those of lost objects."""
    return sum(count(unpack(a.start, a.end, a.lost_ranges)) for a in manifest.chunks if a.lost_ranges)


def unsure(
    plan: Plan,
    manifest: Manifest | None,
    superseded: Manifest | None,
    floors: list[tuple[TopicPartition, int]],
    left_out: Mapping[TopicPartition, datetime],
) -> Iterator[Unsure]:
    """The unsure times that this run adds.

    :param floors: logs whose first offset this run was the first to take, although the log began after offset 0.
    :param left_out: logs that are not archived from their beginning, each with a time after all left-out records.
    """
    for partition in plan.partitions:
        if partition.anew:
            reason = f"topic {partition.topic} began anew when run {plan.run} was planned; nobody knows what it had had"
            yield Unsure(until=hour_start(to_hour(plan.planned_at) + 1), reason=reason)
    if manifest is None:
        return
    for name, offset in floors:
        reason = f"the log of {name} began at offset {offset}, not at 0, when the archive began"
        yield Unsure(until=_first_whole_hour(plan, manifest, name, offset), reason=reason)
    # Objects that a repair has lost are known by name, so only ranges count here.
    known = {str(account.chunk): account.lost_ranges for account in superseded.chunks} if superseded else {}
    lost: dict[TopicPartition, int] = {}
    for account in manifest.chunks:
        end = account.lost_until
        if end is not None and account.lost_ranges != known.get(str(account.chunk)):
            lost[account.chunk.name] = max(end, lost.get(account.chunk.name, 0))
    named = [f"{name} before {end}" for name, end in sorted(lost.items())]
    more = f" and of {len(named) - _NAMED} more partitions" if len(named) > _NAMED else ""
    reason = f"offsets of {', '.join(named[:_NAMED])}{more} were lost (run {plan.run})"
    for name, end in lost.items():
        until = _first_whole_hour(plan, manifest, name, end)
        # The lost offsets may be among the left-out ones, whose order of times is unknown.
        before = left_out.get(name)
        yield Unsure(until=max(until, before) if before else until, reason=reason)


def _first_whole_hour(plan: Plan, manifest: Manifest, name: TopicPartition, offset: int) -> UtcTime:
    """The first hour after the hours of the first records at or behind an offset, before which records are gone.

    The times of the gone records are unknown. By Kafka's order they are no later than the times of the records behind
    them, nor than now. A single record may have any time, so several are used.
    """
    now = to_hour(plan.planned_at)
    entries = [o for o in manifest.stored if (o.topic, o.partition) == name and o.first_offset >= offset]
    begin = min((o.first_offset for o in entries), default=0)
    if plan.settings.time.source != "record":
        # Kafka's order says nothing about other times: the gone records may be of any hour.
        return hour_start(now + 1)
    hours = {hour for o in entries if o.first_offset < begin + FIRST_RECORDS for hour in o.hours}
    return hour_start(max((hour for hour in hours if hour is not None and hour <= now), default=now) + 1)

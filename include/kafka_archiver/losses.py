"""What is gone for good, and which hours that leaves unsure. Pure."""

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.documents import UtcTime, Value
from kafka_archiver.intervals import hour_start, to_hour
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition

# How many offsets behind a loss say up to when it was.
FIRST_RECORDS = 10


class Gone(NamedTuple):
    """Of no moment before `by` anything is said, nor of what the planners up to place `number` of the line saw.

    Both say the same as long as clocks do not go back.
    """

    by: datetime | None
    number: int = 0


class Unsure(Value):
    """Until when hours may lack records that nobody can bring back, and why."""

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
    """Up to when Kafka may have had what no run ever read.

    What a planner finds gone was gone by its later clock, what an attempt finds gone before its run ended.

    :param before: the same without this run.
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
    """How many offsets were lost of which nobody knows what they held: not those of lost objects."""
    return manifest.account["lost"] - sum(o.offsets for o in manifest.lost_objects)


def unsure(
    plan: Plan,
    manifest: Manifest | None,
    superseded: Manifest | None,
    floors: list[tuple[TopicPartition, int]],
    left_out: Mapping[TopicPartition, datetime],
) -> Iterator[Unsure]:
    """What this run adds.

    :param floors: logs whose first offset this run was the first to take; something was before it.
    :param left_out: logs that are not archived from their beginning, and a time before which all of that is.
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
    # What a repair has lost besides, it knows by name.
    known = {str(account.chunk): account.lost_ranges for account in superseded.chunks} if superseded else {}
    for account in manifest.chunks:
        end = account.lost_until
        if end is not None and account.lost_ranges != known.get(str(account.chunk)):
            reason = f"offsets of {account.chunk.name} before {end} were lost (run {plan.run})"
            until = _first_whole_hour(plan, manifest, account.chunk.name, end)
            # Hours are judged as of a moment at which this was still there, in no order that anybody knows.
            before = left_out.get(account.chunk.name)
            yield Unsure(until=max(until, before) if before else until, reason=reason)


def _first_whole_hour(plan: Plan, manifest: Manifest, name: TopicPartition, offset: int) -> UtcTime:
    """The hour behind all hours of the first records at or behind an offset, before which something is gone.

    Nobody knows the times of what is gone: by Kafka's order they were no later than what followed, nor than now. One
    record may have any time, so several are asked.
    """
    now = to_hour(plan.planned_at)
    entries = [o for o in manifest.stored if (o.topic, o.partition) == name and o.first_offset >= offset]
    begin = min((o.first_offset for o in entries), default=0)
    hours = {hour for o in entries if o.first_offset < begin + FIRST_RECORDS for hour in o.hours}
    return hour_start(max((hour for hour in hours if hour is not None and hour <= now), default=now) + 1)

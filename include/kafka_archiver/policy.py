"""Where a partition's next range starts and ends, and what to do when the brokers' state is strange. Pure.

A strange state is decided by the archive's policies, never by accident; the message of each `fail` says what was
found, what it means, and what to do.
"""

from dataclasses import dataclass
from datetime import datetime

from kafka_archiver.config import Archive
from kafka_archiver.errors import PolicyError
from kafka_archiver.plan import PartitionPlan
from kafka_archiver.proof import PartitionProgress
from kafka_archiver.ranges import Range, TopicPartition, share, subtract


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A partition as the brokers describe it at planning.

    :param committed: where the group stands, or will once the unfinished earlier runs are finished; None when it has
        no offset for this partition.
    :param log_end: the last stable offset for read_committed, else the high watermark.
    :param interval_start, interval_end: the first offset with a timestamp at or after the interval's ends; None when
        there is no such record yet.
    :param passed: the offset behind everything that may have a timestamp before the interval's end, records of open
        transactions included: what closes the interval's hours has to reach it.
    :param begin: where `source.start` points, for an archive that starts now.
    """

    name: TopicPartition
    topic_id: str
    committed: int | None
    log_start: int
    log_end: int
    interval_start: int | None
    interval_end: int | None
    passed: int
    begin: int
    # Not asked for unless the partition begins now: see `begins_behind`.
    complete_from: datetime | None = None


def begins_behind(
    archive: Archive, seen: list[Seen], known: dict[TopicPartition, PartitionProgress]
) -> dict[TopicPartition, int]:
    """Where partitions start whose first scheduled run begins behind the log's start: older hours stay incomplete."""
    starts = {s.name: _start(archive, s, known.get(s.name), _is_new(seen, known)) for s in seen}
    return {
        s.name: starts[s.name]
        for s in seen
        if starts[s.name] > s.log_start and (s.name not in known or known[s.name].next is None)
    }


def plan_forward(
    archive: Archive, seen: list[Seen], known: dict[TopicPartition, PartitionProgress]
) -> list[PartitionPlan]:
    """The partitions' part of a scheduled run: from where the last one stopped to the end of the log.

    :param known: what settled and planned runs cover already, by partition.
    :raises PolicyError: a policy says `fail`.
    """
    starts = {s.name: _start(archive, s, known.get(s.name), _is_new(seen, known)) for s in seen}
    left = {s.name: _forward(s, starts[s.name], known.get(s.name), s.log_end) for s in seen}
    granted = share(
        {name: sum(r.size for r in ranges) for name, ranges in left.items()}, archive.source.max_records_per_run
    )
    planned = []
    for state in seen:
        start, ranges = starts[state.name], _first(left[state.name], granted[state.name])
        whole = sum(r.size for r in left[state.name]) == granted[state.name]
        end = max(start, state.log_end if whole else ranges[-1].end if ranges else start)
        lost = subtract(Range(start, max(start, state.log_start)), _covered(known.get(state.name)))
        whole_from = state.complete_from
        planned.append(
            _partition_plan(state, start, end, whole and end >= state.passed, ranges, lost).model_copy(
                update={"complete_from": whole_from}
            )
        )
    return planned


def plan_backfill(seen: list[Seen], known: dict[TopicPartition, PartitionProgress]) -> list[PartitionPlan]:
    """The partitions' part of a backfill: the offsets of the interval that no plan covers. The group stays."""
    planned = []
    for state in seen:
        _refuse_another_topic(state, known.get(state.name))
        end = state.log_end if state.interval_end is None else state.interval_end
        start = end if state.interval_start is None else max(state.interval_start, state.log_start)
        start = min(start, end)
        covered = _covered(known.get(state.name))
        ranges = subtract(Range(start, end), covered)
        closes = end >= state.passed and _knows_the_hour(state, Range(start, end), covered)
        planned.append(_partition_plan(state, start, end, closes, ranges, ()))
    return planned


def _knows_the_hour(state: Seen, taken: Range, covered: list[Range]) -> bool:
    """Whether a backfill of these offsets has the whole interval, as far as Kafka's time index can tell."""
    # A record with a time far ahead hides what comes behind it: then an interval looks empty and is not.
    hidden = not taken.size and bool(subtract(Range(taken.end, state.log_end), covered))
    # What retention removed may have been of this interval.
    cut = 0 < state.log_start == taken.start and bool(subtract(Range(taken.start - 1, taken.start), covered))
    return not hidden and not cut


def _refuse_another_topic(state: Seen, known: PartitionProgress | None) -> None:
    if known and known.topic_id != state.topic_id:
        raise PolicyError(
            f"topic {state.name.topic} was deleted and made again: the ledger knows it as {known.topic_id}, the "
            f"brokers as {state.topic_id}. Its offsets mean other records now. Archive the new topic under another "
            "archive name and store prefix (policies.recreated_topic: fail)"
        )


def _partition_plan(
    state: Seen, start: int, end: int, closes: bool, ranges: tuple[Range, ...], lost: tuple[Range, ...]
) -> PartitionPlan:
    return PartitionPlan(
        topic=state.name.topic,
        topic_id=state.topic_id,
        partition=state.name.partition,
        start=start,
        end=end,
        log_start=state.log_start,
        log_end=state.log_end,
        closes=closes,
        ranges=ranges,
        lost=lost,
    )


def _is_new(seen: list[Seen], known: dict[TopicPartition, PartitionProgress]) -> bool:
    """Whether the archive starts now: nobody remembers a scheduled run, neither the ledger nor the group."""
    return all(p.next is None for p in known.values()) and all(s.committed is None for s in seen)


def _covered(known: PartitionProgress | None) -> list[Range]:
    return [Range(*r) for r in known.covered] if known else []


def _forward(state: Seen, start: int, known: PartitionProgress | None, end: int) -> tuple[Range, ...]:
    return subtract(Range(max(start, state.log_start), end), _covered(known))


def _first(ranges: tuple[Range, ...], count: int) -> tuple[Range, ...]:
    taken: list[Range] = []
    for item in ranges:
        if count <= 0:
            break
        taken.append(Range(item.start, item.start + min(item.size, count)))
        count -= taken[-1].size
    return tuple(taken)


def _start(archive: Archive, state: Seen, known: PartitionProgress | None, is_new: bool) -> int:
    """Where the range starts, once the policies agree that it may. It may lie below the log's start (record_loss)."""
    policies, group, name = archive.policies, archive.group, state.name
    _refuse_another_topic(state, known)
    remembered = known.next if known else None
    start = state.committed
    if start is None and remembered is not None:
        if policies.missing_group == "fail":
            raise PolicyError(
                f"group {group} has no offset for {name}, but the ledger says it is archived up to {remembered}: the "
                "group's offsets expired or were deleted. To go on where the ledger ends set "
                "`policies.missing_group: resume_from_ledger` (policies.missing_group: fail)"
            )
        start = remembered
    elif start is None:
        # A partition that was added later starts at its first record, whatever source.start says.
        start = state.begin if is_new else state.log_start
    elif remembered is not None and start != remembered:
        if policies.moved_group == "fail":
            raise PolicyError(
                f"group {group} stands at {start} in {name}, but the ledger says it is archived up to {remembered}: "
                "somebody moved the group, or something else commits in it. To go on where the ledger ends set "
                "`policies.moved_group: follow_ledger`, or put the group back with `kafka-consumer-groups "
                f"--group {group} --topic {name.topic}:{name.partition} --reset-offsets --to-offset {remembered} "
                "--execute` (policies.moved_group: fail)"
            )
        start = remembered
    if start > state.log_end:
        raise PolicyError(
            f"the archive of {name} stands at {start}, past the end of the log at {state.log_end}: the topic was "
            "truncated or made again, or an unclean leader election lost records. Find out which before you go on: "
            "archive it anew under another archive name (policies.recreated_topic: fail)"
        )
    if start < state.log_start and policies.lost_offsets == "fail":
        raise PolicyError(
            f"{state.log_start - start} offsets of {name} are gone: the archive stands at {start}, but retention has "
            f"removed everything before {state.log_start}. To go on and have [{start}, {state.log_start}) shown as "
            "lost for ever set `policies.lost_offsets: record_loss` (policies.lost_offsets: fail)"
        )
    return start

"""The partitions' part of a plan: which offsets a run takes. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kafka_archiver.errors import PolicyError
from kafka_archiver.plan import PartitionPlan
from kafka_archiver.policy import Beginning, Known, Seen, generation_of, made_again, truncated
from kafka_archiver.proof import PartitionProgress
from kafka_archiver.ranges import Range, TopicPartition, share, subtract


def begins_behind(
    seen: list[Seen], known: Known, starts: Mapping[TopicPartition, Beginning]
) -> dict[TopicPartition, int]:
    """Where partitions start whose first scheduled run begins behind the log's start: older hours stay incomplete.

    Also those whose group was wound forward into a new generation, over offsets that nobody archives.
    """
    behind = {}
    for state in seen:
        before, start = known.get(state.name), starts[state.name]
        first = before is None or before.next is None
        skips = before is not None and before.next is not None and not start.anew and start.start > before.next
        if (first or skips) and start.start > state.log_start:
            behind[state.name] = start.start
    return behind


def plan_forward(
    limit: int,
    seen: list[Seen],
    known: Known,
    starts: Mapping[TopicPartition, Beginning],
    complete_from: Mapping[TopicPartition, datetime],
) -> list[PartitionPlan]:
    """The partitions' part of a scheduled run: from where the last one stopped to the end of the log.

    :param limit: how many offsets all together at most.
    :param known: what settled and planned runs cover already, by partition.
    :param complete_from: of partitions that begin now behind their log's start, or anew.
    """
    covered = {s.name: _covered(known.get(s.name), starts[s.name]) for s in seen}
    left = {s.name: subtract(Range(max(starts[s.name].start, s.log_start), s.log_end), covered[s.name]) for s in seen}
    granted = share({name: sum(r.size for r in ranges) for name, ranges in left.items()}, limit)
    planned = []
    for state in seen:
        start, ranges = starts[state.name].start, _first(left[state.name], granted[state.name])
        whole = sum(r.size for r in left[state.name]) == granted[state.name]
        end = max(start, state.log_end if whole else ranges[-1].end if ranges else start)
        lost = subtract(Range(start, max(start, state.log_start)), covered[state.name])
        planned.append(
            PartitionPlan(
                **_as_seen(state),
                generation=starts[state.name].generation,
                start=start,
                end=end,
                closes=whole and end >= state.passed,
                ranges=ranges,
                lost=lost,
                anew=starts[state.name].anew,
                complete_from=complete_from.get(state.name),
                decided=starts[state.name].decided,
            )
        )
    return planned


def plan_backfill(seen: list[Seen], known: Known) -> list[PartitionPlan]:
    """The partitions' part of a backfill: the offsets of the interval that no plan covers. The group stays.

    :raises PolicyError: a topic was made again, and no scheduled run has begun its new generation yet.
    """
    planned = []
    for state in seen:
        before = known.get(state.name)
        if before and before.topic_id != state.topic_id:
            raise PolicyError(
                f"{made_again(state, before)} A backfill does not begin a new generation; run the archive on its "
                "schedule first (policies.recreated_topic), then backfill"
            )
        if before and before.next is not None and before.next > state.high:
            raise PolicyError(truncated(state, before.next))
        generation = before.generation if before else generation_of(state, known)
        covered = _covered(before, Beginning(0, generation))
        end = state.log_end if state.interval_end is None else state.interval_end
        start = end if state.interval_start is None else max(state.interval_start, state.log_start)
        start = min(start, end)
        archived = [r for whole in covered for r in subtract(whole, [Range(*r) for r in before.lost] if before else [])]
        planned.append(
            PartitionPlan(
                **_as_seen(state),
                generation=generation,
                start=start,
                end=end,
                closes=end >= state.passed and _knows_the_hour(state, Range(start, end), archived),
                ranges=subtract(Range(start, end), covered),
            )
        )
    return planned


def _knows_the_hour(state: Seen, taken: Range, archived: list[Range]) -> bool:
    """Whether a backfill of these offsets has the whole interval, as far as Kafka's time index can tell."""
    # A record with a time far ahead hides what comes behind it: then an interval looks empty and is not.
    hidden = not taken.size and bool(subtract(Range(taken.end, state.log_end), archived))
    # What retention removed may have been of this interval.
    before = subtract(Range(0, taken.start), archived)
    cut = state.log_start == taken.start and bool(before)
    return not hidden and not cut


def _as_seen(state: Seen) -> dict[str, Any]:
    return {
        "topic": state.name.topic,
        "topic_id": state.topic_id,
        "partition": state.name.partition,
        "log_start": state.log_start,
        "log_end": state.log_end,
    }


def _covered(known: PartitionProgress | None, start: Beginning) -> list[Range]:
    """The offsets that are not to be archived again: also those of earlier generations of the same log."""
    if known is None or start.anew:
        return []
    if known.generation == start.generation:
        return [Range(*r) for r in known.covered + known.earlier]
    return list(known.left_behind(start.start))


def _first(ranges: tuple[Range, ...], count: int) -> tuple[Range, ...]:
    taken: list[Range] = []
    for item in ranges:
        if count <= 0:
            break
        taken.append(Range(item.start, item.start + min(item.size, count)))
        count -= taken[-1].size
    return tuple(taken)

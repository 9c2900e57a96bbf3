"""Check at planning that the progress agrees with the last plan of the line, and with itself. Pure.

For one without `content_digest`, of 1.0.0 or earlier. No more is read for it. So it does not see every change: the
audit does, which settles all runs again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.messages.wording import offset_span
from kafka_archiver.model.marks import mark_of
from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.progress import Progress

# Clocks that agree may differ by so much.
_CLOCKS = timedelta(seconds=5)


def refuse_changed_progress(last: Plan | None, settled: Progress, expected: Progress, present: datetime) -> None:
    """Refuse a progress by which a run would leave out offsets, take some again or another log for the archived one, or
    by which hours would be complete that are not.

    :param last: the last plan of the line.
    :param settled: the progress as it is stored.
    :param expected: the same once everything that is planned is settled.
    :param present: by the later clock.
    :raises IntegrityError: somebody changed the progress, or put an earlier one back in part.
    """
    contradictions = [*_with_plan(last, settled, expected), *_with_itself(settled, present)]
    if contradictions:
        raise IntegrityError(
            f"the progress of archive {settled.archive} was changed: {contradictions[0]}.",
            *advise(repair(settled.archive), " computes it again"),
        )


def _with_plan(last: Plan | None, settled: Progress, expected: Progress) -> Iterator[str]:
    """Yield what a plan says otherwise. A further revision of a run says nothing of the present."""
    if last is None or last.supersedes is not None:
        return
    known = expected.by_name()
    for part in last.partitions:
        progress = known.get(part.name)
        # Only a plan that moves the group says where the next run starts.
        starts = part.end if last.moves_group or progress is None else progress.next
        stands = progress and (progress.topic_id, progress.generation, progress.next)
        if stands != (part.topic_id, part.generation, starts):
            yield (
                f"by run {last.run}, the next one starts at {starts} in generation {part.generation} of {part.name}, "
                f"id {part.topic_id}; found "
                + ("nothing" if stands is None else "{2} in generation {1}, id {0}".format(*stands))
            )
        elif progress:
            yield from _with_partition(last.run, part, progress)
    # Plans of earlier releases know less of the clocks.
    if last.hour_rules >= 4:
        latest = (last.at_latest or last.planned_at) + _CLOCKS
        if settled.as_of and settled.as_of > latest:
            yield f"by `as_of`, hours up to {settled.as_of} are judged, and the last plan is of {last.planned_at}"
        waiting = [mark for mark in settled.marks if mark.number == last.number]
        if waiting and waiting != list(mark_of(last)):
            yield f"by `marks`, run {last.run} saw other ends of the logs than by its plan"


def _with_partition(run: str, part: PartitionPlan, progress: PartitionProgress) -> Iterator[str]:
    taken = (*part.ranges, *part.lost)
    if taken and (lacking := progress.without(taken)):
        yield f"run {run} has {offset_span(*lacking[0])} of {part.name}, and the progress does not"
    # A log that had ended before what the archive has of it would have begun a generation, or stopped the run.
    log_end = None if part.high is None else max(part.high, part.log_end, part.end)
    if log_end is not None and progress.reached > log_end:
        yield (
            f"{part.name} ended at {log_end} when run {run} was planned; found offsets up to {progress.reached}, "
            "as if they were archived"
        )


def _with_itself(settled: Progress, present: datetime) -> Iterator[str]:
    if contradiction := settled.contradiction():
        yield contradiction
    if settled.as_of and settled.as_of > present + _CLOCKS:
        yield (
            f"by `as_of`, hours up to {settled.as_of} are judged, and it is {present} (if all clocks were ahead then, "
            "plans are made again from that time on)"
        )

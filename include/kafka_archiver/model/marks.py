"""When an hour closes: not after a delay, but when everything that a planner saw behind its end is archived. Pure.

Each plan is a mark: the moment at which its planner looked, and the ends of all logs then. Once the runs have every
offset below them, each hour that was over at that moment is judged.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kafka_archiver.model.partition_progress import PartitionProgress
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.unsure_hours import LeftOutOffsets, UnprovableMarks
from kafka_archiver.values.documents import UtcTime, Value
from kafka_archiver.values.ranges import Range, TopicPartition, subtract

# The most marks that wait until everything they saw is archived.
MARKS = 16


class High(NamedTuple):
    """The high watermark of one log."""

    topic: str
    partition: int
    generation: int
    offset: int


class Mark(Value):
    """The view of a planner: the logs ended at `high` at or after `as_of`, so everything committed by then is below.

    `older`: what the planner learned about offsets that no plan has.
    """

    number: int
    as_of: UtcTime
    high: tuple[High, ...]
    older: tuple[LeftOutOffsets, ...] = ()


def mark_of(plan: Plan) -> Iterator[Mark]:
    """Yield the mark of a plan that saw the end of every log; none if it did not."""
    high = tuple(High(p.topic, p.partition, p.generation, p.high) for p in plan.partitions if p.high is not None)
    if high and len(high) == len(plan.partitions):
        older = tuple(
            LeftOutOffsets(
                topic=p.topic,
                partition=p.partition,
                ranges=p.older,
                than=p.older_than,
                arrived=plan.hour_rules >= 3 and not plan.settings.time.is_known_to_kafka,
            )
            for p in plan.partitions
            if p.older_than
        )
        yield Mark(number=plan.number, as_of=plan.planned_at, high=high, older=older)


def surviving(
    marks: Iterable[Mark], gone: UnprovableMarks, known: Mapping[TopicPartition, PartitionProgress]
) -> list[Mark]:
    """Return the marks that can still be proved: not those of another log, or from before records were lost."""
    generations = {name: partition.generation for name, partition in known.items()}
    return [
        m
        for m in marks
        if m.number > gone.number
        and (gone.by is None or m.as_of >= gone.by)
        and all(generations[TopicPartition(h.topic, h.partition)] == h.generation for h in m.high)
    ]


def reached(
    as_of: UtcTime | None,
    older: tuple[LeftOutOffsets, ...],
    marks: Iterable[Mark],
    known: Mapping[TopicPartition, PartitionProgress],
) -> tuple[UtcTime | None, tuple[LeftOutOffsets, ...]]:
    """Return the latest moment whose records are all archived, and what was known then about left-out offsets.

    What a planner learned is true for its own mark and for all later marks.
    """
    by_partition = {o.name: o for o in older}
    for mark in sorted(marks, key=lambda mark: mark.number):
        by_partition |= {o.name: o for o in mark.older}
        if (as_of is None or mark.as_of > as_of) and _is_covered(mark, known, by_partition):
            as_of, older = mark.as_of, tuple(by_partition[name] for name in sorted(by_partition))
    return as_of, older


def _is_covered(
    mark: Mark, known: Mapping[TopicPartition, PartitionProgress], observations: Mapping[TopicPartition, LeftOutOffsets]
) -> bool:
    """Return True if the runs have everything below the watermarks, except offsets that are too old to matter."""

    def whole(high: High) -> bool:
        name = TopicPartition(high.topic, high.partition)
        older = [Range(*r) for r in observations[name].ranges] if name in observations else []
        return not any(subtract(hole, older) for hole in known[name].holes(high.offset))

    return all(map(whole, mark.high))


def fewest(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Return at most MARKS marks, the oldest ones and the newest. While a transaction hangs, each run adds one."""
    return marks if len(marks) <= MARKS else (*marks[: MARKS - 1], marks[-1])

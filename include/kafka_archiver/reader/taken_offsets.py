"""Compares the plans of a line with the progress: a plan that lost ranges would leave out records without a word."""

from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.values.ranges import Range, TopicPartition, subtract


class TakenOffsets:
    """The offsets that plans have of the present generations; a few ranges for each partition."""

    def __init__(self, progress: Progress) -> None:
        self._known = {p.name: p for p in progress.partitions if p.covered}
        self._taken: dict[TopicPartition, list[Range]] = {name: [] for name in self._known}

    def add(self, plan: Plan) -> None:
        """Add the offsets of a plan."""
        for part in plan.partitions:
            known = self._known.get(part.name)
            if known and known.generation == part.generation:
                taken = self._taken[part.name]
                for start, end in (*part.ranges, *part.lost):
                    if taken and taken[-1].end == start:
                        taken[-1] = Range(taken[-1].start, end)
                    else:
                        taken.append(Range(start, end))

    def missing(self) -> str:
        """Return the first offsets that the progress has and no plan, for messages; empty if there are none."""
        for name, known in self._known.items():
            for covered in known.covered:
                for left in subtract(Range(*covered), self._taken[name]):
                    return f"{left} of {name}"
        return ""

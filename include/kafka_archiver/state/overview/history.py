"""Lag and rate of each partition over the last runs, from their plans."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.plan import Plan
from kafka_archiver.values.documents import PartitionValue, UtcTime, Value
from kafka_archiver.values.ranges import TopicPartition


class Point(Value):
    """One run's plan. `taken`: offsets of the partition; `left`: offsets of the log that it left to the next run."""

    at: UtcTime
    taken: int
    left: int


class PartitionHistory(PartitionValue):
    """One partition, oldest run first."""

    points: tuple[Point, ...]

    @property
    def rate(self) -> float | None:
        """Offsets a second between the first and the last of these runs; None: too few runs."""
        if len(self.points) < 2:
            return None
        seconds = (self.points[-1].at - self.points[0].at).total_seconds()
        return sum(point.taken for point in self.points[1:]) / seconds if seconds > 0 else None


def last_plans(ledger: Ledger, last: int, count: int) -> list[Plan]:
    """Read the plans of the last scheduled and manual runs, oldest first: one request each.

    :param last: the last place of the line.
    """
    with ThreadPoolExecutor(8) as pool:
        plans = pool.map(ledger.planned, range(max(1, last - count + 1), last + 1))
        return [plan for plan in plans if plan and plan.moves_group]


def histories(plans: Sequence[Plan]) -> list[PartitionHistory]:
    """Return the history of each partition, sorted. Pure."""
    points: dict[TopicPartition, list[Point]] = {}
    for plan in plans:
        for partition in plan.partitions:
            point = Point(at=plan.planned_at, taken=partition.count, left=max(partition.log_end - partition.end, 0))
            points.setdefault(partition.name, []).append(point)
    return [PartitionHistory(topic=n.topic, partition=n.partition, points=tuple(points[n])) for n in sorted(points)]

"""Whether the plans tile each partition's log: no offset twice, none left out."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka_archiver.audit.report import Finding, error, warning
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import PartitionPlan, Plan
from kafka_archiver.proof import Progress
from kafka_archiver.ranges import Range, TopicPartition, overlaps, subtract


class Log(NamedTuple):
    """One log: a partition, of one life of its topic."""

    name: TopicPartition
    generation: int

    def __str__(self) -> str:
        return f"{self.name}" + f" generation {self.generation}" * bool(self.generation)


def check_tiling(plans: Iterable[tuple[Plan, bool]], progress: Progress | None) -> Iterator[Finding]:
    """Overlaps of any two plans, and gaps between where scheduled runs began and where the next one starts.

    :param plans: one an interval: the committed revision that counts, or else what is planned; each with whether it
        is a scheduled run's (a rebuild is what the run was that it replaces).
    """
    taken: dict[Log, list[tuple[Range, str]]] = {}
    scheduled: dict[Log, list[Range]] = {}
    for plan, is_scheduled in plans:
        for partition in plan.partitions:
            log = Log(partition.name, partition.generation)
            taken.setdefault(log, []).extend((r, plan.run) for r in _covered(partition))
            if is_scheduled:
                scheduled.setdefault(log, []).append(Range(partition.start, partition.end))
    after = {Log(p.name, p.generation): p.next for p in (progress.partitions if progress else ())}
    for log in sorted({*taken, *after}):
        ranges = taken.get(log, [])
        for shared in overlaps(r for r, _ in ranges):
            runs = sorted({run for r, run in ranges if r.start < shared.end and shared.start < r.end})
            yield error(
                "overlap",
                f"{log} {shared}",
                f"the same offsets in the plans of runs {', '.join(runs)}",
                "every offset in one plan",
                "Find out which plan was not written by the archiver, and remove its run",
            )
        yield from _gaps(log, [r for r, _ in ranges], scheduled.get(log, []), after.get(log))


def _covered(partition: PartitionPlan) -> list[Range]:
    return [Range(*r) for r in partition.ranges + partition.lost]


def _gaps(log: Log, taken: list[Range], scheduled: list[Range], following: int | None) -> Iterator[Finding]:
    # Only scheduled runs follow each other; without them, progress alone knows how far they came.
    ends = [r.end for r in scheduled] + ([] if following is None else [following])
    starts = [r.start for r in scheduled] or [r.start for r in taken]
    for gap in subtract(Range(min(starts, default=0), max(ends, default=0)), taken) if ends else ():
        yield error(
            "gap",
            f"{log} {gap}",
            "no plan that has these offsets",
            "plans that tile the log without a gap",
            "A plan was removed: restore it from a version or copy of the bucket",
        )


def check_lost(manifest: Manifest) -> Iterator[Finding]:
    """What a run lost: no damage, the archive says it itself, but shown for ever."""
    for account in manifest.chunks:
        for gone in account.lost_ranges:
            yield warning(
                "lost",
                f"{Log(account.chunk.name, account.generation)} {Range(*gone)}",
                f"offsets that Kafka had dropped before run {manifest.run} read them (lost_offsets: record_loss)",
                "their records",
                "Nothing brings them back; this is shown in every audit",
            )

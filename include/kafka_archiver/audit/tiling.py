"""Whether the plans tile each partition's log: no offset twice, none left out."""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_archiver.audit.report import Finding, error, warning
from kafka_archiver.gaps import unpack
from kafka_archiver.manifest import Manifest, Outcome
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import Range, TopicPartition, merge, overlaps, subtract

_SHOWN = 20


class Log(NamedTuple):
    """One log: a partition, of one life of its topic."""

    name: TopicPartition
    generation: int

    def __str__(self) -> str:
        return f"{self.name}" + f" generation {self.generation}" * bool(self.generation)


class Tiling:
    """The plans of the line, one after the other: no offset in two of them, none left out. Pure but for what it keeps,
    which is a few ranges a log."""

    def __init__(self, archive: str) -> None:
        self._archive = archive
        self._replaced: set[str] = set()
        self._taken: dict[Log, tuple[Range, ...]] = {}
        self._scheduled: dict[Log, Range] = {}

    def take(self, plan: Plan, outcome: Outcome | None) -> Iterator[Finding]:
        """Take in the next plan.

        :param outcome: how its run ended; None: not yet.
        """
        if outcome == "replaced":
            self._replaced.add(plan.run)
        # As long as it is not decided, the run that would be taken over has the offsets.
        undecided = plan.takes_over and outcome is None and plan.supersedes not in self._replaced
        if outcome == "given_up" or undecided or (plan.supersedes and not plan.takes_over):
            return
        for partition in plan.partitions:
            log = Log(partition.name, partition.generation)
            if plan.moves_group:
                before = self._scheduled.get(log, Range(partition.start, partition.start))
                self._scheduled[log] = Range(before.start, max(before.end, partition.end))
            if outcome == "replaced":
                # Its replacement has the offsets.
                continue
            taken, new = self._taken.get(log, ()), [Range(*r) for r in partition.ranges + partition.lost]
            for shared in overlaps([*taken, *merge(new)]):
                yield error(
                    "overlap",
                    f"{log} {shared}",
                    f"the same offsets in the plan of run {plan.run} and in an earlier one of the line",
                    "every offset in one plan",
                    f"`airflow archive show {self._archive} {plan.run}`: which plan did the archiver not write?",
                )
            self._taken[log] = merge([*taken, *new])

    def gaps(self) -> Iterator[Finding]:
        """What no plan has between where scheduled runs began and where the next one starts."""
        for log, whole in sorted(self._scheduled.items()):
            # A generation may leave to earlier ones of the same log what they have.
            earlier = [r for other, taken in self._taken.items() if other.name == log.name for r in taken]
            for gap in subtract(whole, earlier):
                yield error(
                    "gap",
                    f"{log} {gap}",
                    "no plan that has these offsets",
                    "plans that tile the log without a gap",
                    "A plan was removed: restore it from a version or copy of the bucket. Where another one has its "
                    f"place: `airflow archive rebuild {self._archive} --run RUN` reads them again, of the run that it "
                    "was to replace",
                )


def check_lost(manifest: Manifest) -> Iterator[Finding]:
    """What a run lost: no damage, the archive says it itself, but shown for ever."""
    for account in manifest.chunks:
        rows = unpack(account.start, account.end, account.lost_ranges).tolist()
        # Between records that were read there may be a hundred thousand of them.
        shown = [Range(*row) for row in (rows if len(rows) <= _SHOWN else [(rows[0][0], rows[-1][1])])]
        count = f"{account.lost} offsets" if len(rows) > _SHOWN else "offsets"
        for gone in shown:
            yield warning(
                "lost",
                f"{Log(account.chunk.name, account.generation)} {gone}",
                f"{count} that Kafka had dropped before run {manifest.run} read them (lost_offsets: record_loss)",
                "their records",
                "Nothing brings them back; this is shown in every audit",
            )
    for item in manifest.lost_objects:
        yield warning(
            "lost",
            item.key,
            f"an object with {item.rows} rows that nobody could bring back, says repair {manifest.run}",
            "its rows",
            "Nothing brings them back; this is shown in every audit",
        )

"""Checks that the plans cover each partition's log without gaps and overlaps."""

from collections.abc import Iterator
from typing import NamedTuple

from kafka_archiver.audit.report import error, warning
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import show
from kafka_archiver.model.findings import Finding
from kafka_archiver.model.manifest import Manifest, Outcome
from kafka_archiver.model.plan import Plan
from kafka_archiver.values.gaps import unpack
from kafka_archiver.values.ranges import Range, TopicPartition, merge, overlaps, subtract

_SHOWN = 20


class Log(NamedTuple):
    """One generation of a partition's log."""

    name: TopicPartition
    generation: int

    def __str__(self) -> str:
        return f"{self.name}" + f" generation {self.generation}" * bool(self.generation)


class Tiling:
    """Takes the plans of the line in order, and finds overlaps and gaps. Keeps a few ranges per log; else pure."""

    def __init__(self, archive: str) -> None:
        self._archive = archive
        self._replaced: set[str] = set()
        self._taken: dict[Log, tuple[Range, ...]] = {}
        self._scheduled: dict[Log, Range] = {}

    def take(self, plan: Plan, outcome: Outcome | None) -> Iterator[Finding]:
        """Take the next plan.

        :param outcome: how its run ended; None if it has not ended.
        """
        if outcome == "replaced":
            self._replaced.add(plan.run)
        # Until a takeover ends, its offsets belong to the run that it takes over.
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
                    f"the same offsets in the plan of run {plan.run} and in an earlier plan of the line",
                    "every offset in one plan",
                    advise("Find the plan that the archiver did not write: ", show(self._archive, plan.run)),
                )
            self._taken[log] = merge([*taken, *new])

    def gaps(self) -> Iterator[Finding]:
        """Offsets without a plan, between the start of the first scheduled run and the end of the last one."""
        for log, whole in sorted(self._scheduled.items()):
            # Offsets of a generation may be in the plans of earlier generations.
            earlier = [r for other, taken in self._taken.items() if other.name == log.name for r in taken]
            for gap in subtract(whole, earlier):
                yield error(
                    "gap",
                    f"{log} {gap}",
                    "no plan that has these offsets",
                    "plans that tile the log without a gap",
                    "A plan was removed: restore it from a version or copy of the bucket. If another plan has its "
                    f"place: `airflow archive rebuild {self._archive} --run RUN` reads the offsets again, where RUN is "
                    "the run that the removed plan was to replace",
                )


def check_lost(manifest: Manifest) -> Iterator[Finding]:
    """Yield the offsets that a run lost: no damage, since the account has it, but every audit shows it."""
    for account in manifest.chunks:
        rows = unpack(account.start, account.end, account.lost_ranges).tolist()
        # There may be a hundred thousand ranges, between records that were read.
        shown = [Range(*row) for row in (rows if len(rows) <= _SHOWN else [(rows[0][0], rows[-1][1])])]
        count = f"{account.lost} offsets" if len(rows) > _SHOWN else "offsets"
        for gone in shown:
            yield warning(
                "lost",
                f"{Log(account.chunk.name, account.generation)} {gone}",
                f"{count} that Kafka had removed before run {manifest.run} read them (lost_offsets: record_loss)",
                "their records",
                "The records cannot be restored; every audit shows this",
            )
    for item in manifest.lost_objects:
        yield warning(
            "lost",
            item.key,
            f"an object with {item.rows} rows, which repair {manifest.run} recorded as lost",
            "its rows",
            "The records cannot be restored; every audit shows this",
        )

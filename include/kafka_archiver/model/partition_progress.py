"""The progress of one partition: what the ended runs have of its log. Pure."""

from collections.abc import Iterable
from typing import Self

from kafka_archiver.model.chunk_accounts import Witness
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.order import Order
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.values.documents import Value, unwritten
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.ranges import Range, TopicPartition, merge, subtract


class PartitionProgress(Value):
    """The progress of ended runs in a partition's present generation.

    `next`: where the next scheduled run starts, if one ever ran. `floor`: where the log began when it was first seen.
    `covered`: the offsets of its runs. `earlier`: the offsets that earlier generations have of the same log, without
    those that the group was wound back over. `wound`: these, for each generation of the same log but the first; empty
    if the group was moved ahead. `order`: the order of times, in the offsets of backfills that assume one.
    `judged`: the log did not begin at 0, and the hours that this leaves incomplete are in `unsure`.
    `leader_epoch`, `witness`: used to recognise the log.
    """

    topic: str
    topic_id: str
    partition: int
    generation: int = 0
    next: int | None = None
    floor: int = 0
    leader_epoch: int | None = None
    witness: Witness | None = None
    covered: tuple[OffsetRange, ...] = ()
    earlier: tuple[OffsetRange, ...] = ()
    wound: tuple[tuple[int, int], ...] = unwritten(())
    # Only for archives that assume an order.
    order: Order | None = unwritten(None)
    judged: bool = unwritten(False)

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def reached(self) -> int:
        """The end of the last archived or lost offsets."""
        return max(self.next or 0, max((end for _, end in self.covered + self.earlier), default=0))

    def holes(self, end: int) -> tuple[Range, ...]:
        """The offsets from the log's first one up to `end` that no run has."""
        return subtract(Range(self.floor, end), (Range(*r) for r in self.covered + self.earlier))

    def without(self, ranges: Iterable[OffsetRange]) -> tuple[Range, ...]:
        """The given offsets that no run has."""
        taken = [Range(*r) for r in self.covered + self.earlier]
        return tuple(left for r in ranges for left in subtract(Range(*r), taken))

    def left_behind(self, start: int) -> tuple[Range, ...]:
        """The offsets that stay with this and earlier generations when a new one begins at `start` in the same log."""
        again = [self.offsets_behind(start)]
        return merge(left for r in self.covered + self.earlier for left in subtract(Range(*r), again))

    def offsets_behind(self, start: int) -> Range:
        """The offsets that the group is wound back over when a new generation begins at `start` in the same log."""
        return Range(start, max(start, self.next or 0))

    def with_earlier(self, planned: PartitionPlan) -> Self:
        """The progress with a late run of an earlier generation, as after a rebuild that took over."""
        since = self.generation - planned.generation
        if since > len(self.wound):
            # Another log.
            return self
        again = [Range(*r) for r in self.wound[-since:]]
        late = (left for r in (*planned.ranges, *planned.lost) for left in subtract(Range(*r), again))
        return self.model_copy(update={"earlier": merge((*(Range(*r) for r in self.earlier), *late))})


def after_run(
    before: PartitionProgress | None, planned: PartitionPlan, plan: Plan, covers: bool, witness: Witness | None
) -> PartitionProgress:
    """Return the progress after one more run. `covers`: the run has the planned offsets, or will have them."""
    same = before if before and before.generation == planned.generation else None
    log = None if planned.anew and same is None else before
    position = same.next if same else None
    taken = (*planned.ranges, *planned.lost) if covers else ()
    witnesses = [w for w in (log.witness if log else None, witness) if w]
    return PartitionProgress(
        topic=planned.topic,
        topic_id=planned.topic_id,
        partition=planned.partition,
        generation=planned.generation,
        next=max(planned.end, position or 0) if plan.moves_group else position,
        floor=log.floor if log else planned.log_start,
        judged=log.judged if log else bool(planned.log_start) and plan.loss_rules == 2,
        # The highest one seen of the log.
        leader_epoch=max((p.leader_epoch for p in (planned, log) if p and p.leader_epoch is not None), default=None),
        witness=max(witnesses, key=lambda w: w.offset, default=None),
        covered=merge(Range(*r) for r in ((*same.covered, *taken) if same else taken)),
        earlier=(same.earlier if same else log.left_behind(planned.start) if log else ()),
        order=log.order if log else None,
        wound=(same.wound if same else (*log.wound, log.offsets_behind(planned.start)) if log else ()),
    )


def witnesses_of(manifest: Manifest | None) -> dict[TopicPartition, Witness]:
    """Return the last record of each partition that a run has seen."""
    witnesses: dict[TopicPartition, Witness] = {}
    for account in manifest.chunks if manifest else ():
        known = witnesses.get(account.name)
        if account.last and (known is None or known.offset < account.last.offset):
            witnesses[account.name] = account.last
    return witnesses

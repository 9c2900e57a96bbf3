"""Progress: what the ended runs of an archive cover, and until when hours are complete. Pure and derived.

The first n plans of an archive's line, and how their runs ended, give this document.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple, Self

from pydantic import Field

from kafka_archiver.messages.advice import fill
from kafka_archiver.model.losses import Gone, IfOrdered, Older, Unsure, gone_by, if_ordered, latest_of, losses
from kafka_archiver.model.manifest import Manifest, Outcome, Witness
from kafka_archiver.model.order import Order
from kafka_archiver.model.plan import PartitionPlan, Plan
from kafka_archiver.model.stretches import Stretch
from kafka_archiver.values.documents import Document, UtcTime, Value
from kafka_archiver.values.gaps import OffsetRange
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import Range, TopicPartition, merge, subtract

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
    older: tuple[Older, ...] = ()


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
    # Not written for a log with one generation.
    wound: tuple[tuple[int, int], ...] = Field(default=(), exclude_if=lambda wound: not wound)
    # Only for archives that assume an order.
    order: Order | None = Field(default=None, exclude_if=lambda order: order is None)
    judged: bool = Field(default=False, exclude_if=lambda judged: not judged)

    @property
    def name(self) -> TopicPartition:
        """The partition's name."""
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


class Progress(Document):
    """The summary of the first `settled` runs of the line: they have ended, and their hours have been proved.

    `begun`: the start of the first run's interval. `as_of`: every hour that was over by then is judged; `closed_until`:
    the end of the last of these hours. `gone_by`: everything that Kafka lost before it was archived was gone by then.
    `older`: what was known at `as_of` about offsets that no run has. `marks`: what planners saw since, as long as not
    all of it is archived. `unsure`: the time until which hours may lack lost records; `if_ordered`: an earlier time, by
    what the archive assumes about the order of times. `lost`: the number of all offsets ever lost;
    `lost_by`: the last of the runs, by its number, that lost some. `dead_letters`: the records that are dead letters
    now; `dead_lettered_by`: the last run that added some. (Runs that an earlier release settled are not in the last
    three.) `stretches`: the verdict on hours without a proof of their own, in order.
    """

    document: Literal["kafka-archiver/progress"] = "kafka-archiver/progress"
    version: Literal[1] = 1
    archive: str
    settled: int = 0
    begun: UtcTime | None = None
    as_of: UtcTime | None = None
    gone_by: UtcTime | None = None
    older: tuple[Older, ...] = ()
    unsure: Unsure | None = None
    # Only for archives that assume an order.
    if_ordered: IfOrdered | None = Field(default=None, exclude_if=lambda unsure: unsure is None)
    lost: int = 0
    # Not written before there are some.
    lost_by: int = Field(default=0, exclude_if=lambda number: not number)
    dead_letters: int = Field(default=0, exclude_if=lambda count: not count)
    dead_lettered_by: int = Field(default=0, exclude_if=lambda number: not number)
    marks: tuple[Mark, ...] = ()
    partitions: tuple[PartitionProgress, ...] = ()
    stretches: tuple[Stretch, ...] = Field(default=(), exclude_if=lambda stretches: not stretches)

    def partition(self, name: TopicPartition) -> PartitionProgress | None:
        """Return the progress of one partition."""
        return next((p for p in self.partitions if p.name == name), None)

    @property
    def closed_until(self) -> UtcTime | None:
        """Every hour that ends by then is judged, including hours without records; None before the first."""
        return None if self.as_of is None else hour_start(to_hour(self.as_of))

    @property
    def unsure_until(self) -> UtcTime | None:
        """Hours before this time may lack lost records, as far as the archive assumes no order; None: no hour does."""
        unsure = self.if_ordered or self.unsure
        return unsure.until if unsure else None

    @property
    def whole_from(self) -> UtcTime | None:
        """Hours before this time may lack offsets that no run has yet; None: no hour does."""
        return max((o.than for o, holes in self.older_holes() if holes), default=None)

    def asked(self) -> dict[TopicPartition, Older]:
        """Return the observations of planners about offsets that no run has, also those whose observations wait."""
        observations = (*self.older, *(o for mark in self.marks for o in mark.older))
        return {TopicPartition(o.topic, o.partition): o for o in observations}

    def older_holes(self) -> list[tuple[Older, tuple[Range, ...]]]:
        """The offsets that no run has, for logs that are not archived from their beginning."""
        known = {p.name: p for p in self.partitions}
        return [(o, known[TopicPartition(o.topic, o.partition)].without(o.ranges)) for o in self.older]

    def after(
        self,
        plan: Plan,
        outcome: Outcome | None = None,
        manifest: Manifest | None = None,
        superseded: Manifest | None = None,
        ended: datetime | None = None,
    ) -> Self:
        """The progress with the next plan of the line.

        :param outcome: how its run ended; None: not yet, and the plan counts as planned.
        :param manifest: the run's manifest; None as long as it is not known.
        :param superseded: the manifest of the run that it supersedes, if that was committed.
        :param ended: when the run ended, by the later clock.
        """
        if outcome == "given_up":
            return self.model_copy(update={"settled": plan.number})
        known = {p.name: p for p in self.partitions}
        witnesses = _witnesses(manifest)
        begun, taken = {}, {}
        knows_order = bool(plan.max_disorder_ms or plan.ordered_within_ms) or (
            # What contradicts the declaration does so, too, in a run that was planned while it was not in the YAML.
            plan.hour_rules >= 2 and any(p.order for p in self.partitions)
        )
        for planned in plan.partitions:
            before = known.get(planned.name)
            if before and before.generation > planned.generation:
                known[planned.name] = before.with_earlier(planned) if outcome != "replaced" else before
                continue
            after = _with(before, planned, plan, outcome != "replaced", witnesses.get(planned.name))
            if manifest and knows_order:
                after = after.model_copy(update={"order": (after.order or Order()).after(planned.name, manifest)})
            first = after.floor + 1
            if after.judged and before is None:
                begun[after.name] = after.floor
            elif (
                after.floor and not after.judged and not after.holes(first) and (before is None or before.holes(first))
            ):
                taken[after.name] = after.floor
            known[planned.name] = after
        partitions = tuple(known[name] for name in sorted(known))
        gone = gone_by(self.gone_by, {p.name for p in self.partitions}, plan, manifest, superseded, ended)
        waiting = _surviving((*self.marks, *_mark(plan)), gone, known)
        anew = {planned.name for planned in plan.partitions if planned.anew}
        older = tuple(o for o in self.older if TopicPartition(o.topic, o.partition) not in anew)
        as_of, older = _reached(self.as_of, older, waiting, known)
        lost, letters = _more("lost", manifest, superseded), _more("dead_lettered", manifest, superseded)
        left_out = {TopicPartition(o.topic, o.partition): o for o, holes in self.older_holes() if holes}
        new = [*losses(plan, manifest, superseded, ended, begun, taken, left_out)]
        disorder = max((p.order.disorder for p in partitions if p.order), default=0)
        return self.model_copy(
            update={
                "settled": plan.number,
                "begun": self.begun or plan.interval.start,
                "as_of": as_of,
                "gone_by": gone.by,
                "older": older,
                "unsure": latest_of([self.unsure, *(loss.unsure for loss in new)]),
                "if_ordered": if_ordered(self.unsure, self.if_ordered, new, plan.ordered_within_ms, disorder),
                "lost": self.lost + lost,
                "lost_by": plan.number if lost > 0 else self.lost_by,
                "dead_letters": max(self.dead_letters + letters, 0),
                "dead_lettered_by": plan.number
                if letters > 0 or _has_other_letters(plan, manifest, superseded)
                else self.dead_lettered_by,
                "marks": _fewer(tuple(m for m in waiting if as_of is None or m.as_of > as_of)),
                "partitions": partitions,
            }
        )


def _more(fate: str, manifest: Manifest | None, superseded: Manifest | None) -> int:
    """The number of offsets with this fate that a run has more than the run that it supersedes."""
    if manifest is None:
        return 0
    return manifest.account[fate] - (superseded.account[fate] if superseded else 0)


def _has_other_letters(plan: Plan, manifest: Manifest | None, superseded: Manifest | None) -> bool:
    """Return whether a rebuild has dead letters that the run before it had not, or not the same: as many may be others.

    A replay or a repair has no others.
    """
    if manifest is None or superseded is None or plan.origin != "rebuild":
        return False

    def letters(of: Manifest) -> set[tuple[object, ...]]:
        return {(o.topic, o.partition, o.chunk_start, o.path, o.checksum) for o in of.dead_letters}

    return not letters(manifest) <= letters(superseded)


def _with(
    before: PartitionProgress | None, planned: PartitionPlan, plan: Plan, covers: bool, witness: Witness | None
) -> PartitionProgress:
    """A partition after one more run. `covers`: the run has the planned offsets, or will have them."""
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


def _witnesses(manifest: Manifest | None) -> dict[TopicPartition, Witness]:
    """The last record of each partition that a run has seen."""
    witnesses: dict[TopicPartition, Witness] = {}
    for account in manifest.chunks if manifest else ():
        known = witnesses.get(account.chunk.name)
        if account.last and (known is None or known.offset < account.last.offset):
            witnesses[account.chunk.name] = account.last
    return witnesses


# Marks: what planners saw, and whether all of it is archived.


def _mark(plan: Plan) -> Iterator[Mark]:
    high = tuple(High(p.topic, p.partition, p.generation, p.high) for p in plan.partitions if p.high is not None)
    if high and len(high) == len(plan.partitions):
        older = tuple(
            Older(
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


def _surviving(marks: Iterable[Mark], gone: Gone, known: Mapping[TopicPartition, PartitionProgress]) -> list[Mark]:
    """The marks that can still be proved: not those of another log, or from before records were lost."""
    generations = {name: partition.generation for name, partition in known.items()}
    return [
        m
        for m in marks
        if m.number > gone.number
        and (gone.by is None or m.as_of >= gone.by)
        and all(generations[TopicPartition(h.topic, h.partition)] == h.generation for h in m.high)
    ]


def _reached(
    as_of: UtcTime | None,
    older: tuple[Older, ...],
    marks: Iterable[Mark],
    known: Mapping[TopicPartition, PartitionProgress],
) -> tuple[UtcTime | None, tuple[Older, ...]]:
    """The latest moment whose records are all archived, and what was known then about left-out offsets.

    What a planner learned is true for its own mark and for all later marks.
    """
    by_partition = {TopicPartition(o.topic, o.partition): o for o in older}
    for mark in sorted(marks, key=lambda mark: mark.number):
        by_partition |= {TopicPartition(o.topic, o.partition): o for o in mark.older}
        if (as_of is None or mark.as_of > as_of) and _is_covered(mark, known, by_partition):
            as_of, older = mark.as_of, tuple(by_partition[name] for name in sorted(by_partition))
    return as_of, older


def _is_covered(
    mark: Mark, known: Mapping[TopicPartition, PartitionProgress], observations: Mapping[TopicPartition, Older]
) -> bool:
    """Return True if the runs have everything below the watermarks, except offsets that are too old to matter."""

    def whole(high: High) -> bool:
        name = TopicPartition(high.topic, high.partition)
        older = [Range(*r) for r in observations[name].ranges] if name in observations else []
        return not any(subtract(hole, older) for hole in known[name].holes(high.offset))

    return all(map(whole, mark.high))


def _fewer(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """At most MARKS marks. While a transaction hangs, each run adds one; the oldest ones and the newest are enough."""
    return marks if len(marks) <= MARKS else (*marks[: MARKS - 1], marks[-1])


def explain(progress: Progress) -> str:
    """The reason why hours before `whole_from` are incomplete."""
    holes = [f"{TopicPartition(o.topic, o.partition)} {hole}" for o, left in progress.older_holes() for hole in left]
    more = f" and {len(holes) - 3} more" if len(holes) > 3 else ""
    return (
        f"the archive does not have {', '.join(holes[:3])}{more}, whose records may be of this hour; "
        f"{fill(progress.archive).quoted} archives what Kafka still has of them"
    )

"""Progress: what the ended runs of an archive cover, and until when hours are complete. Pure and derived.

The first n plans of an archive's line, and how their runs ended, give this document.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Literal, Self

from kafka_archiver.model.loss_causes import LossCause, fewest_causes
from kafka_archiver.model.manifest import Manifest, Outcome
from kafka_archiver.model.marks import Mark, fewest, mark_of, reached, surviving
from kafka_archiver.model.order import Order
from kafka_archiver.model.partition_progress import PartitionProgress, after_run, witnesses_of
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.stretches import Stretch
from kafka_archiver.model.topic_changes import dropped_offsets, former_disorders, gone_logs, logs_added_later
from kafka_archiver.model.unsure_hours import (
    IfOrdered,
    LeftOutOffsets,
    Loss,
    Unsure,
    gone_by,
    if_ordered,
    latest_of,
    losses,
    not_archived_any_more,
)
from kafka_archiver.values.documents import ArchiveDocument, UtcTime, unwritten
from kafka_archiver.values.intervals import hour_start, to_hour
from kafka_archiver.values.ranges import Range, TopicPartition


class Progress(ArchiveDocument):
    """The summary of the first `settled` runs of the line: they have ended, and their hours have been proved.

    `begun`: the start of the first run's interval. `as_of`: every hour that was over by then is judged; `closed_until`:
    the end of the last of these hours. `gone_by`: everything that Kafka lost before it was archived was gone by then.
    `older`: what was known at `as_of` about offsets that no run has. `marks`: what planners saw since, as long as not
    all of it is archived. `unsure`: the time until which hours may lack lost records; `if_ordered`: an earlier time, by
    what the archive assumes about the order of times; `unsure_by`: the losses behind `unsure`, if a person can accept
    one of them by name; see `causes`. `lost`: the number of all offsets ever lost;
    `lost_by`: the last of the runs, by its number, that lost some. `dead_letters`: the records that are dead letters
    now; `dead_lettered_by`: the last run that added some. (Runs that an earlier release settled are not in the last
    three.) `former_disorder`: the most milliseconds by which a record of a log that is gone was older than an earlier
    one. `stretches`: the verdict on hours without a proof of their own, in order.
    """

    DIGESTS_CONTENT: ClassVar[bool] = True
    document: Literal["kafka-archiver/progress"] = "kafka-archiver/progress"
    settled: int = 0
    begun: UtcTime | None = None
    as_of: UtcTime | None = None
    gone_by: UtcTime | None = None
    older: tuple[LeftOutOffsets, ...] = ()
    unsure: Unsure | None = None
    # Only for archives that assume an order.
    if_ordered: IfOrdered | None = unwritten(None)
    unsure_by: tuple[LossCause, ...] = unwritten(())
    lost: int = 0
    lost_by: int = unwritten(0)
    dead_letters: int = unwritten(0)
    dead_lettered_by: int = unwritten(0)
    marks: tuple[Mark, ...] = ()
    partitions: tuple[PartitionProgress, ...] = ()
    # Only if a topic was made again, for archives that assume an order.
    former_disorder: int = unwritten(0)
    stretches: tuple[Stretch, ...] = unwritten(())

    def by_name(self) -> dict[TopicPartition, PartitionProgress]:
        """Return the progress of all partitions, for who asks for many of them."""
        return {p.name: p for p in self.partitions}

    def partition(self, name: TopicPartition) -> PartitionProgress | None:
        return next((p for p in self.partitions if p.name == name), None)

    @property
    def closed_until(self) -> UtcTime | None:
        """Every hour that ends by then is judged, including hours without records; None before the first."""
        return None if self.as_of is None else hour_start(to_hour(self.as_of))

    @property
    def causes(self) -> tuple[LossCause, ...]:
        """The losses for which hours may lack records. By an earlier release's progress, nobody can accept them."""
        return self.unsure_by or ((LossCause(until=self.unsure.until),) if self.unsure else ())

    @property
    def unsure_until(self) -> UtcTime | None:
        """Hours before this time may lack lost records, as far as the archive assumes no order; None: no hour does."""
        unsure = self.if_ordered or self.unsure
        return unsure.until if unsure else None

    @property
    def whole_from(self) -> UtcTime | None:
        """Hours before this time may lack offsets that no run has yet; None: no hour does."""
        return max((o.than for o, holes in self.older_holes() if holes), default=None)

    def contradiction(self) -> str:
        """Return in what it contradicts itself, so that somebody has changed it; empty: in nothing."""
        if len(self.by_name()) < len(self.partitions):
            return "a partition is listed twice"
        unsure = self.unsure and self.unsure.until
        until = max((cause.until for cause in self.unsure_by), default=unsure)
        if unsure != until:
            hours = f"those before {unsure}" if unsure else "none"
            return f"by `unsure_by`, hours before {until} may lack records, and by `unsure` {hours}"
        if not unsure and (judged := next((p for p in self.partitions if p.judged), None)):
            return f"by `unsure`, no hour may lack records, and the log of {judged.name} began at {judged.floor}"
        if self.as_of and (waiting := next((m for m in self.marks if m.as_of <= self.as_of), None)):
            return f"by `as_of`, all before {self.as_of} is archived, and by `marks` not all before {waiting.as_of}"
        return ""

    def asked(self) -> dict[TopicPartition, LeftOutOffsets]:
        """Return the observations of planners about offsets that no run has, also those whose observations wait."""
        observations = (*self.older, *(o for mark in self.marks for o in mark.older))
        return {o.name: o for o in observations}

    def older_holes(self) -> list[tuple[LeftOutOffsets, tuple[Range, ...]]]:
        """The offsets that no run has, for logs that are not archived from their beginning."""
        known = self.by_name()
        return [(o, known[o.name].without(o.ranges)) for o in self.older]

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
        known = self.by_name()
        witnesses = witnesses_of(manifest)
        begun, taken = {}, {}
        knows_order = bool(plan.max_disorder_ms or plan.ordered_within_ms) or (
            # What contradicts the declaration does so, too, in a run that was planned while it was not in the YAML.
            plan.hour_rules >= 2 and (self.former_disorder or any(p.order for p in self.partitions))
        )
        former_disorder = max([self.former_disorder, *former_disorders(known, plan, manifest if knows_order else None)])
        for planned in plan.partitions:
            before = known.get(planned.name)
            if before and before.generation > planned.generation:
                known[planned.name] = before.with_earlier(planned) if outcome != "replaced" else before
                continue
            after = after_run(before, planned, plan, outcome != "replaced", witnesses.get(planned.name))
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
        waiting = surviving((*self.marks, *mark_of(plan)), gone, known)
        gone_names = gone_logs(self.partitions, plan)
        older = tuple(o for o in self.older if o.name not in gone_names)
        as_of, older = reached(self.as_of, older, waiting, known)
        dropped = dropped_offsets(older, known, plan)
        older = tuple(o for o in older if o not in dropped)
        lost, letters = _more("lost", manifest, superseded), _more("dead_lettered", manifest, superseded)
        left_out = {o.name: o for o, holes in self.older_holes() if holes}
        added = logs_added_later(self.partitions, plan)
        new = [*losses(plan, manifest, superseded, ended, begun, taken, left_out, added)]
        new += [not_archived_any_more(plan, each) for each in dropped]
        disorder = max([former_disorder, *(p.order.disorder for p in partitions if p.order)])
        return self.model_copy(
            update={
                "settled": plan.number,
                "begun": self.begun or plan.interval.start,
                "as_of": as_of,
                "gone_by": gone.by,
                "older": older,
                "unsure": latest_of([self.unsure, *(loss.unsure for loss in new)]),
                "if_ordered": if_ordered(self.unsure, self.if_ordered, new, plan.ordered_within_ms, disorder),
                "unsure_by": _recorded(self.causes, new, plan.number),
                "lost": self.lost + lost,
                "lost_by": plan.number if lost > 0 else self.lost_by,
                "dead_letters": max(self.dead_letters + letters, 0),
                "dead_lettered_by": plan.number
                if letters > 0 or _has_other_letters(plan, manifest, superseded)
                else self.dead_lettered_by,
                "marks": fewest(tuple(m for m in waiting if as_of is None or m.as_of > as_of)),
                "partitions": partitions,
                "former_disorder": former_disorder,
            }
        )


def _recorded(causes: Iterable[LossCause], new: Iterable[Loss], number: int) -> tuple[LossCause, ...]:
    """Return the causes with the losses of one more run; nothing if nobody can accept any of them."""
    added = (LossCause(until=loss.unsure.until, lost_by=number if loss.is_recorded else None) for loss in new)
    fewest = fewest_causes([*causes, *added])
    return fewest if any(cause.is_recorded for cause in fewest) else ()


def _more(fate: str, manifest: Manifest | None, superseded: Manifest | None) -> int:
    """The number of offsets with this fate that a run has more than the run that it supersedes."""
    if manifest is None:
        return 0
    return manifest.account[fate] - (superseded.account[fate] if superseded else 0)


def _has_other_letters(plan: Plan, manifest: Manifest | None, superseded: Manifest | None) -> bool:
    """Return True if a rebuild has dead letters that the run before it had not, or not the same: as many may be others.

    A replay or a repair has no others.
    """
    if manifest is None or superseded is None or plan.origin != "rebuild":
        return False

    def letters(of: Manifest) -> set[tuple[object, ...]]:
        return {(o.topic, o.partition, o.chunk_start, o.path, o.checksum) for o in of.dead_letters}

    return not letters(manifest) <= letters(superseded)

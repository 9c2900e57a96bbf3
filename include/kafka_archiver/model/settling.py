"""Settling: what one more run of the line changes in the progress and the hours. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kafka_archiver.model.complete_hours import Judgement, complete_if_ordered, judge_hour
from kafka_archiver.model.manifest import Manifest, Outcome, Settled
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourProof, hours_with_proofs, proof_in_a_stretch, prove
from kafka_archiver.model.stretches import LONG, Ruling, Stretch, stretch_of, stretches_after
from kafka_archiver.values.intervals import hour_start, hours_between, to_hour
from kafka_archiver.values.ranges import Range, merge, subtract


@dataclass(frozen=True)
class Settling:
    """One ended run, and the progress without it.

    :param manifest: the run's manifest; None when it was not committed.
    :param superseded: the manifest of the run that it supersedes, if that was final.
    :param ended: when the run ended.
    """

    before: Progress
    plan: Plan
    outcome: Outcome
    manifest: Manifest | None
    superseded: Manifest | None
    ended: datetime

    @cached_property
    def after(self) -> Progress:
        after = self._summary
        stretches = self.before.stretches
        if self._bulk or (self.earlier is not None and stretches):
            edges = frozenset(to_hour(m) for m in (after.whole_from, after.unsure and after.unsure.until) if m)
            stretches = stretches_after(stretches, Ruling(self._bulk, self.earlier or 0, edges, self._stretch))
        return after.model_copy(update={"stretches": stretches})

    @cached_property
    def _summary(self) -> Progress:
        """The progress after the run, but for its stretches."""
        return self.before.after(self.plan, self.outcome, self.manifest, self.superseded, self.ended)

    def _judge(self, hour: int | None) -> Judgement:
        judgement = judge_hour(self._summary, hour)
        return judgement if judgement.status == "complete" or hour is None else self._assumed.get(hour, judgement)

    def _stretch(self, hour: int) -> Stretch | None:
        """The verdict on an hour without a record; None: it is open."""
        status, as_of, reason, assumes = self._judge(hour)
        if status == "open":
            return None
        return Stretch(
            start=hour_start(hour),
            until=hour_start(hour + 1),
            number=self.plan.number,
            run=self.plan.run,
            status=status,
            reason=reason,
            complete_as_of=as_of,
            assumes=assumes,
        )

    @cached_property
    def _assumed(self) -> dict[int, Judgement]:
        return complete_if_ordered(self.plan, self.manifest, self._summary)

    @cached_property
    def _lost(self) -> Mapping[int | None, int]:
        """By hour, how many rows the run records as lost; negative if it has lost rows again."""
        rows: Counter[int | None] = Counter()
        for manifest, sign in (self.manifest, 1), (self.superseded, -1):
            for entry in manifest.lost_objects if manifest else ():
                rows.update({hour: sign * entry.rows_in(hour) for hour in entry.hours})
        return {hour: count for hour, count in rows.items() if count}

    @cached_property
    def _spans(self) -> tuple[range, ...]:
        """The hours that the run judges, whether they have records or not."""
        interval = self.plan.interval
        own = hours_between(interval.start, interval.end) if self.plan.supersedes is None else range(0)
        closed_before, closed_after = self.before.closed_until, self._summary.closed_until
        closing = range(0)
        if closed_after:
            # Hours before the first run's interval are closed only if they have records.
            closing = hours_between(closed_before or self._summary.begun or closed_after, closed_after)
        over = to_hour(closed_after) if closed_after else 0
        spans = (range(own.start, min(own.stop, over)), closing, _range(self._assumed))
        return tuple(span for span in spans if span)

    @cached_property
    def _bulk(self) -> tuple[range, ...]:
        """The spans of which those hours that have no record are stretches."""
        return tuple(span for span in self._spans if self.plan.hour_rules >= 2 and len(span) > LONG)

    @cached_property
    def hours(self) -> Collection[int | None]:
        """The hours whose proofs the run may change or begin: those that it touches, and those that it judges."""
        touched = {hour for m in (self.manifest, self.superseded) if m for o in m.objects for hour in o.hours}
        touched |= set(self._lost)
        spans = merge(Range(span.start, span.stop) for span in self._spans)
        bulk = [Range(span.start, span.stop) for span in self._bulk]
        judged = {hour for span in spans for remaining in subtract(span, bulk) for hour in range(*remaining)}
        # An incomplete hour of a stretch that is complete by assumption gets a proof.
        covered = {h for h in judged if h not in self._assumed and stretch_of(self.before.stretches, h)}
        return {*touched, *(judged - covered)}

    def may_change(self, hour: int | None) -> bool:
        """Return True if the run may change the proof that an hour has already, beside those of `hours`."""
        if hour is None:
            return False
        return (self.earlier is not None and hour < self.earlier) or any(hour in span for span in self._bulk)

    @property
    def reaches(self) -> range | None:
        """The hours that `may_change` is about; None: none."""
        ends = [span.stop for span in self._bulk] + ([] if self.earlier is None else [self.earlier])
        starts = [span.start for span in self._bulk] + ([] if self.earlier is None else [0])
        return range(min(starts), max(ends)) if ends else None

    @property
    def earlier(self) -> int | None:
        """Hours before this one that have a proof already may change, too; None: none of them."""
        closed_after, closed_before = self._summary.closed_until, self.before.closed_until
        lacked = self.before.whole_from
        # `first`: open hours when the first hours are closed. `whole`: hours that a backfill completes.
        first = to_hour(closed_after) if closed_after and not closed_before else None
        whole = to_hour(lacked) if lacked and lacked != self._summary.whole_from else None
        return max(filter(None, (first, whole)), default=None)

    @cached_property
    def _proved(self) -> tuple[Range, ...]:
        return hours_with_proofs(self.before)

    def had_proof(self, hour: int | None) -> bool:
        """Return True if an hour must have had a proof of its own before the run."""
        return hour is not None and any(hour in hours for hours in self._proved)

    def known(self, hour: int | None, proof: HourProof | None) -> HourProof | None:
        """Return what is known of an hour before the run.

        :param proof: the hour's own proof, if it has one.
        """
        return proof or proof_in_a_stretch(self.before, hour)

    def prove(
        self, hour: int | None, known: HourProof | None, replaced: Contribution | None, former_gone: bool = False
    ) -> HourProof:
        """The proof of an hour after the run; the known proof if the run changes nothing.

        :param replaced: what the superseded run had added.
        :param former_gone: the hour had a proof, and it is gone.
        """
        judgement = self._judge(hour)
        # An hour from before the archive may be complete without a proof.
        whole = judge_hour(self.before, hour).status == "complete"
        lost = self._lost.get(hour, 0)
        return prove(hour, known, self.plan, self.manifest, judgement, replaced, whole, lost, former_gone)

    def done(self, proofs: Iterable[HourProof]) -> Settled:
        """Return the record of settling the run.

        :param proofs: the proofs of `hours`, and those that it may have changed.
        """
        proved = [p for p in proofs if p.hour is not None]
        complete = [p for p in proved if p.status == "complete" and p.number == self.plan.number]
        without = _ranges(proved)
        closed = [s.hours for s in self.after.stretches if (s.status, s.number) == ("complete", self.plan.number)]
        return Settled(
            archive=self.plan.archive,
            run=self.plan.run,
            number=self.plan.number,
            closed=_ranges(p for p in complete if p.closed_by == self.plan.run),
            changed=_ranges(p for p in complete if p.closed_by != self.plan.run),
            stretches=merge(
                remaining for hours in closed for remaining in subtract(Range(hours.start, hours.stop), without)
            ),
        )


def _range(hours: Collection[int]) -> range:
    """The hours from the first one to the last one of hours without a gap."""
    return range(min(hours), max(hours) + 1) if hours else range(0)


def _ranges(proofs: Iterable[HourProof]) -> tuple[Range, ...]:
    return merge(Range(p.hour, p.hour + 1) for p in proofs if p.hour is not None)

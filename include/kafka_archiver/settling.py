"""Settling: what one more run of the line changes in the progress and the hours. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kafka_archiver.assumption import assumed
from kafka_archiver.intervals import hours_between, to_hour
from kafka_archiver.manifest import Manifest, Outcome, Settled
from kafka_archiver.plan import Plan
from kafka_archiver.progress import Progress
from kafka_archiver.proof import Contribution, HourProof, Judgement, judge, prove
from kafka_archiver.ranges import Range, merge


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
        """The progress after the run."""
        return self.before.after(self.plan, self.outcome, self.manifest, self.superseded, self.ended)

    @cached_property
    def _assumed(self) -> dict[int, Judgement]:
        return assumed(self.plan, self.manifest, self.after)

    @cached_property
    def _lost(self) -> Mapping[int | None, int]:
        """By hour, how many rows the run records as lost; negative if it has lost rows again."""
        rows: Counter[int | None] = Counter()
        for manifest, sign in (self.manifest, 1), (self.superseded, -1):
            for entry in manifest.lost_objects if manifest else ():
                rows.update({hour: sign * entry.rows_in(hour) for hour in entry.hours})
        return {hour: count for hour, count in rows.items() if count}

    @cached_property
    def hours(self) -> Collection[int | None]:
        """The hours whose proofs the run may change: those that it touches or closes."""
        touched = {hour for m in (self.manifest, self.superseded) if m for o in m.objects for hour in o.hours}
        touched |= set(self._lost)
        interval = self.plan.interval
        own = hours_between(interval.start, interval.end) if self.plan.supersedes is None else range(0)
        was, now = self.before.closed_until, self.after.closed_until
        closing = range(0)
        if now:
            # Hours before the first run's interval are closed only if they have records.
            closing = range(to_hour(was), to_hour(now)) if was else hours_between(self.after.begun or now, now)
        judged = {hour for hour in (*own, *closing) if now and hour < to_hour(now)}
        return {*touched, *judged, *self._assumed}

    @property
    def earlier(self) -> int | None:
        """Hours before this one that have a proof already may change, too; None: none of them."""
        now, was, lacked = self.after.closed_until, self.before.closed_until, self.before.whole_from
        # `first`: open hours when the first hours are closed. `whole`: hours that a backfill completes.
        first = to_hour(now) if now and not was else None
        whole = to_hour(lacked) if lacked and lacked != self.after.whole_from else None
        return max(filter(None, (first, whole)), default=None)

    def prove(self, hour: int | None, known: HourProof | None, replaced: Contribution | None) -> HourProof:
        """The proof of an hour after the run; the known proof if the run changes nothing.

        :param replaced: what the superseded run had added.
        """
        judgement = judge(self.after, hour)
        if judgement.status != "complete" and hour is not None:
            judgement = self._assumed.get(hour, judgement)
        # An hour from before the archive may be complete without a proof.
        whole = judge(self.before, hour).status == "complete"
        return prove(hour, known, self.plan, self.manifest, judgement, replaced, whole, self._lost.get(hour, 0))

    def done(self, proofs: Iterable[HourProof]) -> Settled:
        """What settling the run did.

        :param proofs: the proofs that this run was the last to change.
        """
        complete = [p for p in proofs if p.status == "complete" and p.hour is not None]
        return Settled(
            archive=self.plan.archive,
            run=self.plan.run,
            number=self.plan.number,
            closed=_ranges(p for p in complete if p.closed_by == self.plan.run),
            changed=_ranges(p for p in complete if p.closed_by != self.plan.run),
        )


def _ranges(proofs: Iterable[HourProof]) -> tuple[Range, ...]:
    return merge(Range(p.hour, p.hour + 1) for p in proofs if p.hour is not None)

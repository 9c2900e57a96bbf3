"""Settling: what taking one more run of the line into the progress does to the hours. Pure."""

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
    """One run that has ended, and the progress without it.

    :param manifest: what it wrote; None when it was not committed.
    :param superseded: what the run had written in whose place it comes, if that was final.
    :param ended: when it ended.
    """

    before: Progress
    plan: Plan
    outcome: Outcome
    manifest: Manifest | None
    superseded: Manifest | None
    ended: datetime

    @cached_property
    def after(self) -> Progress:
        """The progress with it."""
        return self.before.after(self.plan, self.outcome, self.manifest, self.superseded, self.ended)

    @cached_property
    def _assumed(self) -> dict[int, Judgement]:
        return assumed(self.plan, self.manifest, self.after)

    @cached_property
    def _lost(self) -> Mapping[int | None, int]:
        """By hour, how many rows it has on record as lost; fewer than none where it has again what was lost."""
        rows: Counter[int | None] = Counter()
        for manifest, sign in (self.manifest, 1), (self.superseded, -1):
            for entry in manifest.lost_objects if manifest else ():
                rows[entry.hour] += sign * entry.rows
        return {hour: count for hour, count in rows.items() if count}

    @cached_property
    def hours(self) -> Collection[int | None]:
        """The hours whose proofs it may change: those that it touches or closes."""
        touched = {o.hour for m in (self.manifest, self.superseded) if m for o in m.objects}
        touched |= set(self._lost)
        interval = self.plan.interval
        own = hours_between(interval.start, interval.end) if self.plan.supersedes is None else range(0)
        was, now = self.before.closed_until, self.after.closed_until
        closing = range(0)
        if now:
            # Of the hours before the first run's interval those that have records.
            closing = range(to_hour(was), to_hour(now)) if was else hours_between(self.after.begun or now, now)
        judged = {hour for hour in (*own, *closing) if now and hour < to_hour(now)}
        return {*touched, *judged, *self._assumed}

    @property
    def earlier(self) -> int | None:
        """Those that begin before this hour and have a proof already may change, too; None: none of them."""
        now, was, lacked = self.after.closed_until, self.before.closed_until, self.before.whole_from
        # What was open when the first hours are closed, and what a backfill makes whole.
        first = to_hour(now) if now and not was else None
        whole = to_hour(lacked) if lacked and lacked != self.after.whole_from else None
        return max(filter(None, (first, whole)), default=None)

    def prove(self, hour: int | None, known: HourProof | None, replaced: Contribution | None) -> HourProof:
        """The proof of an hour with it; what is known already when that changes nothing.

        :param replaced: what the run that it supersedes had added.
        """
        judgement = judge(self.after, hour)
        if judgement.status != "complete" and hour is not None:
            judgement = self._assumed.get(hour, judgement)
        # Without a proof, of an hour from before the archive.
        whole = judge(self.before, hour).status == "complete"
        return prove(hour, known, self.plan, self.manifest, judgement, replaced, whole, self._lost.get(hour, 0))

    def done(self, proofs: Iterable[HourProof]) -> Settled:
        """What settling it did.

        :param proofs: those that it was the last to change.
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

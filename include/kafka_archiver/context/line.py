"""The line of an archive's plans: the ended runs, the open ones, and the next place."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafka_archiver.context.archive_context import Context
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.manifest import Commit, Outcome
from kafka_archiver.model.object_keys import line_document
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress

log = logging.getLogger(__name__)
_STAMP = re.compile(r"kafka-archiver (?P<archive>\S+) #(?P<number>[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class UnsettledPlan:
    """A plan that is not settled: its run has not ended (`commit` is None), or its hours are not proved yet."""

    plan: Plan
    commit: Commit | None

    @property
    def outcome(self) -> Outcome | None:
        """The end of its run; None: it has not ended."""
        return self.commit.outcome if self.commit else None

    @property
    def is_open(self) -> bool:
        """True if the run has to be finished: it has not ended yet, or is committed and not settled.

        False for a rebuild or a repair that is not final: if it is not continued, the next run gives it up.
        """
        optional = self.plan.supersedes is not None and not self.plan.takes_over
        return self.outcome == "committed" or (self.outcome is None and not optional)


@dataclass(frozen=True, slots=True)
class Line:
    """The line after its settled part: `waiting`, in the line's order."""

    settled: Progress
    waiting: Sequence[UnsettledPlan]

    @property
    def last(self) -> int:
        """The number of the last plan."""
        return self.waiting[-1].plan.number if self.waiting else self.settled.settled

    @property
    def unfinished(self) -> list[Plan]:
        """The plans whose runs have to be finished."""
        return [w.plan for w in self.waiting if w.is_open]

    def outcome_of(self, run: str) -> Outcome | None:
        """Return the end of an unsettled run; None: it has not ended, or is settled."""
        return next((w.outcome for w in self.waiting if w.plan.run == run), None)

    def expected(self, ledger: Ledger) -> Progress:
        """Return the progress once all waiting plans are settled."""
        progress = self.settled
        for waiting in self.waiting:
            progress = progress.after(waiting.plan, waiting.outcome, ledger.manifest(waiting.plan.run))
        return progress


def read_line(context: Context, settled: Progress | None = None) -> Line:
    """Read the progress and each plan after it. Lists nothing; the cost depends only on unsettled plans.

    :param settled: use this instead of the stored progress.
    """
    # A new archive has no progress.
    progress = settled or context.ledger.progress() or Progress(archive=context.archive.archive)
    plans = list(context.ledger.following(progress.settled))
    return Line(progress, [UnsettledPlan(plan, context.ledger.commit(plan.run)) for plan in plans])


def tidy_line(context: Context, line: Line, own: Iterable[str] = ()) -> Line:
    """Bring the line in order, which any process may do; returns the new line.

    Copies each plan to the other documents of its run. Ends runs: a run that a later plan has replaced, or, if the run
    became final first, that plan; and each abandoned rebuild or repair, whose original still counts.

    :param own: rebuilds and repairs that are at work.
    """
    replaced = {w.plan.supersedes: w.plan for w in line.waiting if w.plan.supersedes}
    waiting = []
    for unsettled in line.waiting:
        context.ledger.file_plan(unsettled.plan)
        ended = unsettled.commit
        if ended is None and (other := replaced.get(unsettled.plan.run)):
            ended = end_run(context, unsettled.plan, "replaced", other.run)
        elif ended is None and unsettled.plan.takes_over and context.ledger.is_final(unsettled.plan.supersedes or ""):
            ended = end_run(context, unsettled.plan, "given_up", unsettled.plan.supersedes or "")
        elif ended is None and not unsettled.is_open and unsettled.plan.run not in own:
            ended = end_run(context, unsettled.plan, "given_up", "the next run")
        waiting.append(UnsettledPlan(unsettled.plan, ended))
    return Line(line.settled, waiting)


def end_run(context: Context, plan: Plan, outcome: Outcome, by: str) -> Commit:
    """End a run without a result. If the run has ended already, that end counts."""
    commit = Commit(
        archive=plan.archive,
        run=plan.run,
        revision=plan.revision,
        outcome=outcome,
        by=by,
        plan_digest=plan.digest,
        manifest_digest=None,
        committed_at=context.clock(),
    )
    stored = context.ledger.create_commit(commit)
    if stored == commit:
        log.info("run %s has ended: %s by %s", plan.run, outcome.replace("_", " "), by)
    return stored


def append_plan(context: Context, line: Line, plan: Plan) -> bool:
    """Append a plan to the line that was read. False when another planner was faster.

    :raises IntegrityError: a plan was deleted from this place: the new plan would take the same offsets again.
    """
    ledger, known = context.ledger, {w.plan.run for w in line.waiting}
    replaced = (w.commit for w in line.waiting if w.commit and w.outcome == "replaced" and w.commit.by not in known)
    gap = next((f"run {c.run} was replaced by {c.by}, which the line does not have" for c in replaced), "")
    if not gap and ledger.planned(plan.number + 1):
        gap = f"place {plan.number + 1} has a plan"
    if not gap or ledger.planned(plan.number):
        return ledger.append(plan)
    raise IntegrityError(
        f"place {plan.number} of the line of archive {plan.archive} is empty: {gap}. Somebody deleted the plan, and "
        "a new plan would take its offsets again.",
        *advise(
            repair(plan.archive),
            " puts it back from its run's `plan.json`; without that, restore "
            f"{ledger.store.url}/{line_document(plan.archive, plan.number)} from a version or copy",
        ),
    )


def group_stamp(archive: str, number: int) -> str:
    """Return the metadata that a run's commit writes.

    :param number: the run's place in the line.
    """
    return f"kafka-archiver {archive} #{number}"


def stamped_number(text: str, archive: str) -> int:
    """Return the place in the line of the run that wrote the metadata; 0 when no run of this archive did."""
    match = _STAMP.fullmatch(text)
    return int(match["number"]) if match and match["archive"] == archive else 0

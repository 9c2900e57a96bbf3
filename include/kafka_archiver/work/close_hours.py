"""Close hours: take ended runs into the archive's progress, one after the other, and prove the hours that this changes.

Derived data, written last. A run and the runs before it determine what is written, so a second process, however late,
writes the same. Nothing newer is overwritten. The verdict on an hour: `model/complete_hours`.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.run_documents import effective_runs
from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.advice import go_on
from kafka_archiver.messages.errors import NOT_RUN, IntegrityError, TransientError
from kafka_archiver.model.manifest import Commit
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import Contribution, HourProof, paged
from kafka_archiver.model.settling import Settling
from kafka_archiver.model.stretches import Stretch
from kafka_archiver.values.intervals import hour_start
from kafka_archiver.values.ranges import Range, merge
from kafka_archiver.values.threads import each
from kafka_archiver.work.object_removal import remove_objects, replaced_runs

log = logging.getLogger(__name__)
# How often a proof, or the progress, is read again when another process was faster.
TRIES = 20


class ChangedHour(NamedTuple):
    """A complete hour that a run closed or changed. `since`: when the run was committed."""

    run: str
    since: datetime
    proof: HourProof


class ClosedStretch(NamedTuple):
    """Hours without a record that a run made complete, and that have no proof of their own.

    :ivar since: when the run was committed.
    :ivar ranges: of whole hours since 1970, in order.
    """

    run: str
    since: datetime
    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        """The number of hours."""
        return sum(hours.size for hours in self.ranges)


class ClosedHours(NamedTuple):
    """The hours that runs have closed or changed."""

    changed: Sequence[ChangedHour] = ()
    stretches: Sequence[ClosedStretch] = ()


def close_hours(context: Context, runs: Sequence[str]) -> ClosedHours:
    """Settle every run of the line that has ended, up to the first one that has not.

    :returns: the complete hours that these runs closed or changed, and the stretches that they closed, also if the runs
        were settled before: an event that was lost with a crash is then emitted by the next attempt.
    :raises IntegrityError: one of the runs has not ended.
    """
    effective = list(effective_runs(context, runs))
    for run, commit in effective:
        if commit is None:
            raise IntegrityError(
                f"run {run} of archive {context.archive.archive} is not committed: expected the task `commit` to have "
                "committed it.",
                *go_on(context.archive.archive, run),
                kinds=(NOT_RUN,),
            )
    _settle_all(context)
    changed: list[ChangedHour] = []
    stretches: list[ClosedStretch] = []
    for run, commit in effective:
        if commit and (outcome := context.ledger.settled(run)):
            hours = [hour for r in merge(Range(*r) for r in outcome.closed + outcome.changed) for hour in range(*r)]
            proofs, since = each(context.ledger.hour, hours), commit.committed_at
            changed += [ChangedHour(run, since, proof) for proof in proofs if proof and proof.status == "complete"]
            if outcome.stretches:
                stretches.append(ClosedStretch(run, since, tuple(Range(*r) for r in outcome.stretches)))
        else:
            log.warning("run %s is committed; its hours are proved once the runs before it have ended", run)
    return ClosedHours(changed, stretches)


def _settle_all(context: Context) -> None:
    """Settle the runs of the line up to the first one that has not ended."""
    overtaken = 0
    while overtaken < TRIES:
        stored = context.ledger.stored_progress()
        before = stored.document or Progress(archive=context.ledger.archive)
        plan = context.ledger.planned(before.settled + 1)
        commit = context.ledger.commit(plan.run) if plan else None
        if plan is None or commit is None:
            return
        if not _settle_run(context, stored, before, plan, commit):
            overtaken += 1
    raise TransientError(f"others have settled runs of archive {context.archive.archive} {TRIES} times; try again")


def _settle_run(context: Context, stored: Stored[Progress], before: Progress, plan: Plan, commit: Commit) -> bool:
    """Settle one run. False when another process was faster."""
    ledger = context.ledger
    change = load_settling(ledger, before, plan, commit)
    proofs = _prove_hours(ledger, change)
    # Before the run is settled: after a crash in between, only an unsettled run is taken up again.
    if change.manifest and not plan.keep_superseded:
        for run in replaced_runs(ledger, plan):
            remove_objects(ledger, run, {o.key for o in change.manifest.stored})
    ledger.create_settled(change.done(proofs))
    if not ledger.put_progress(change.after, stored):
        return False
    _report(plan.run, [proof for proof in proofs if proof.number == plan.number], change.after.stretches)
    return True


def load_settling(ledger: Ledger, before: Progress, plan: Plan, commit: Commit) -> Settling:
    """Return an ended run with its documents.

    :raises IntegrityError: its manifest, or that of the run that it supersedes, is not the one that was committed.
    """
    if commit.outcome != "committed":
        return Settling(before, plan, commit.outcome, None, None, commit.committed_at)
    manifest = ledger.sound_manifest(plan.run, commit)
    earlier = ledger.commit(plan.supersedes) if plan.supersedes else None
    final = earlier is not None and earlier.outcome == "committed"
    superseded = ledger.sound_manifest(plan.supersedes or "", earlier) if final else None
    return Settling(before, plan, commit.outcome, manifest, superseded, commit.committed_at)


def _prove_hours(ledger: Ledger, change: Settling) -> list[HourProof]:
    """Write the proofs that change. Returns the proofs of all hours that the run might change."""
    hours = set(change.hours)
    if reach := change.reaches:
        hours |= {hour for hour in ledger.hours(reach) if change.may_change(hour)}
    in_order = sorted(hours, key=lambda hour: -1 if hour is None else hour)
    return [proof for proof in each(lambda hour: _prove_hour(ledger, hour, change), in_order) if proof]


def _prove_hour(ledger: Ledger, hour: int | None, change: Settling) -> HourProof | None:
    for _ in range(TRIES):
        stored = ledger.stored_hour(hour)
        if is_strange := stored.document is not None and not is_of_the_line(ledger, stored.document, change.plan):
            log.warning("the proof of hour %s is of a run that the line does not have: it does not count", hour)
        own = None if is_strange else stored.document
        known = change.known(hour, own)
        # Else a new proof would say that the hour has only this run's records.
        is_gone = is_strange or (own is None and change.had_proof(hour))
        proof = change.prove(hour, known, _contribution(ledger, known, change.plan.supersedes), is_gone)
        if proof is known:
            return stored.document
        if put_proof(ledger, proof, stored):
            return proof
    raise TransientError(f"the proof of hour {hour} was changed by others {TRIES} times; try again")


def is_of_the_line(ledger: Ledger, proof: HourProof, plan: Plan | None = None) -> bool:
    """Return False if a proof is of a run that the line does not have: they are copies of different moments.

    :param plan: the plan that is settled; what is of an earlier one is not looked for.
    """
    if plan and proof.number < plan.number:
        return True
    other = plan if plan and proof.number == plan.number else ledger.planned(proof.number)
    return other is not None and other.run == proof.changed_by


def put_proof(ledger: Ledger, proof: HourProof, stored: Stored[HourProof]) -> bool:
    """Replace the proof that was read, its new pages first. False when another process was faster."""
    short, page = paged(proof)
    while page:
        if not ledger.put_page(page, stored):
            return False
        short, page = paged(short)
    return ledger.put_hour(short, stored)


def _contribution(ledger: Ledger, proof: HourProof | None, run: str | None) -> Contribution | None:
    if proof is None or run is None:
        return None
    here = next((c for c in proof.runs if c.run == run), None)
    if here or not proof.pages or run in proof.replaced:
        return here
    plan = ledger.plan(run)
    page = proof.page_of(plan.number) if plan else None
    return None if page is None else next((c for c in ledger.page(proof, page).runs if c.run == run), None)


def _report(run: str, proofs: Sequence[HourProof], stretches: Sequence[Stretch]) -> None:
    closed = [p for p in proofs if p.closed_by == run and p.hour is not None]
    for proof in closed[:48]:
        log.info(
            "hour %s is complete: %s records in %d objects",
            f"{hour_start(proof.hour or 0):%Y-%m-%d %H}:00Z",
            f"{proof.rows:,}",
            proof.objects,
        )
    late = sum(c.rows for p in proofs for c in p.runs if c.run == run and c.late)
    still = sum(p.status == "open" for p in proofs)
    lacking = [p for p in proofs if p.status == "incomplete" and p.hour is not None]
    for proof in lacking[:48]:
        log.warning("hour %s is incomplete: %s", f"{hour_start(proof.hour or 0):%Y-%m-%d %H}:00Z", proof.reason)
    for stretch in (stretch for stretch in stretches if stretch.run == run):
        hours = f"{stretch.start:%Y-%m-%d %H}:00Z to {stretch.until:%Y-%m-%d %H}:00Z"
        if stretch.status == "complete":
            log.info("hours %s are complete; those without a proof of their own have no record", hours)
        else:
            log.warning("hours %s are incomplete: %s", hours, stretch.reason)
    log.info(
        "run %s settled: %d hours closed, %d still open, %d incomplete, %s records came late for a closed hour",
        run,
        len(closed),
        still,
        len(lacking),
        f"{late:,}",
    )

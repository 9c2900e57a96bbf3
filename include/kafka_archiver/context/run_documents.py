"""The documents of a run that the later steps need."""

import logging
from collections.abc import Iterator, Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.advice import go_on
from kafka_archiver.messages.errors import NOT_RUN, IntegrityError
from kafka_archiver.model.manifest import Commit, Manifest
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.repaired import without_lost

log = logging.getLogger(__name__)


def effective_runs(context: Context, runs: Sequence[str]) -> Iterator[tuple[str, Commit | None]]:
    """Yield the runs with their commits, without replaced and given-up runs, which must not come back."""
    for run in runs:
        commit = context.ledger.commit(run)
        if commit and commit.outcome != "committed":
            log.warning("run %s is left alone: it was %s by %s", run, commit.outcome.replace("_", " "), commit.by)
        elif other := context.ledger.superseded_by(run):
            log.warning("run %s is left alone: %s has taken its place", run, other)
        else:
            yield run, commit


def written_documents(context: Context, run: str) -> tuple[Plan, Manifest]:
    """Return the plan and the manifest of a run.

    :raises IntegrityError: one of them is missing, or is not the one that was committed.
    """
    plan, manifest = context.ledger.plan(run), context.ledger.sound_manifest(run)
    if plan is None or manifest is None:
        missing = "plan" if plan is None else "manifest"
        raise IntegrityError(
            f"run {run} of archive {context.archive.archive} has no {missing} in the ledger: expected a {missing} from "
            f"the task `{'plan' if plan is None else 'archive'}`.",
            *go_on(context.archive.archive, run),
            kinds=(NOT_RUN,),
        )
    return plan, manifest


def write_repair_manifest(context: Context, plan: Plan) -> None:
    """Write the manifest of a repair, if it is missing.

    :raises IntegrityError: the repaired run has no manifest, or another than was committed; or the repair is not in the
        line.
    """
    context.ledger.require_in_line(plan)
    before = context.ledger.sound_manifest(plan.supersedes or "")
    if before is None:
        raise IntegrityError(
            f"run {plan.supersedes} of archive {plan.archive} has no manifest, and run {plan.run} repairs it: restore "
            "manifest.json from a version or copy of the store"
        )
    context.ledger.create_manifest(without_lost(plan, before))

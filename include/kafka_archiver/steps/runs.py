"""The documents of a run that the later steps need."""

import logging
from collections.abc import Iterator, Sequence

from kafka_archiver.errors import IntegrityError
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context

log = logging.getLogger(__name__)


def that_count(context: Context, runs: Sequence[str]) -> Iterator[str]:
    """The runs without those in whose place a rebuild is committed: nobody may bring these back."""
    for run in runs:
        if other := context.ledger.superseded_by(run):
            log.warning("run %s is left alone: %s has taken its place", run, other)
        else:
            yield run


def written(context: Context, run: str) -> tuple[Plan, Manifest]:
    """The plan and the manifest of a run.

    :raises IntegrityError: one of them is not there.
    """
    plan, manifest = context.ledger.plan(run), context.ledger.manifest(run)
    if plan is None or manifest is None:
        missing = "plan" if plan is None else "manifest"
        raise IntegrityError(
            f"run {run} of archive {context.archive.archive} has no {missing} in the ledger: expected the task "
            f"`{'plan' if plan is None else 'archive'}` to have written it; clear that task to run it again"
        )
    return plan, manifest

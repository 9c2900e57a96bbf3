"""The documents of a run that the later steps need."""

from kafka_archiver.errors import IntegrityError
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context


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

"""Backlog: finish earlier runs one after the other, so that each finished run is progress."""

from collections.abc import Callable, Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.work.close_hours import close_hours
from kafka_archiver.work.commit import commit
from kafka_archiver.work.planned_work import PlannedWork
from kafka_archiver.work.verify import verify


def archive_runs(context: Context, work: PlannedWork, archive: Callable[[str], object]) -> None:
    """Archive the runs that need it. Every run but the last is verified, committed and settled before the next.

    :param archive: writes the objects and the manifest of a run.
    """
    *earlier, own = work.runs
    for run in earlier:
        _finish_run(context, run, archive if run in work.archive else _write_nothing)
    if own in work.archive:
        archive(own)


def _finish_run(context: Context, run: str, archive: Callable[[str], object]) -> None:
    if context.ledger.manifest(run) is None:
        archive(run)
    try:
        verify(context, [run])
    except IntegrityError:
        # Some of its objects are gone or damaged: a replay writes them again.
        archive(run)
        verify(context, [run])
    commit(context, [run])
    close_hours(context, [run])


def unsettled_runs(context: Context, runs: Sequence[str]) -> list[str]:
    """Return the last run, and the earlier ones that are not settled yet."""
    *earlier, own = runs
    progress = context.ledger.progress()
    settled = progress.settled if progress else 0
    return [*(run for run in earlier if (plan := context.ledger.plan(run)) and plan.number > settled), own]


def _write_nothing(_: str) -> None:
    """Do nothing: a run without offsets has its manifest already."""

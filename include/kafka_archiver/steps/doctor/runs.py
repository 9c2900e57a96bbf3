"""The ledger: runs that were begun and not finished, and what was lost."""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime

from kafka_archiver.documents import isoformat
from kafka_archiver.plan import Plan
from kafka_archiver.proof import Progress
from kafka_archiver.steps.doctor.check import Check, ok, warning

# By the last document that a run has.
_NEXT = {"plan": "read nothing yet, or failed while it read", "manifest": "wrote all objects", "commit": "is final"}


def check_runs(
    archive: str, waiting: list[Plan], documents: Mapping[str, Set[str]], progress: Progress, now: datetime
) -> Iterator[Check]:
    """The unfinished runs.

    :param documents: of each run in the ledger, the names of its documents.
    """
    for plan in waiting:
        last = next(name for name in ("commit", "manifest", "plan") if name in documents[plan.run])
        yield warning(
            f"run {plan.run}",
            f"planned at {isoformat(plan.planned_at)} ({_ago(now, plan.planned_at)}), it {_NEXT[last]}; not settled",
            "it is at work now, or it failed: the next run finishes it first",
            f"nothing, or at once: airflow dags trigger archive_{archive}",
            f"why it failed: the log of its last task (airflow dags list-runs archive_{archive})",
        )
    for run, found in documents.items():
        if run not in progress.runs and "commit" not in found and all(run != plan.run for plan in waiting):
            yield warning(
                f"rebuild {run}",
                "begun and not committed; what it would replace is still what counts",
                "it is at work, or it was given up",
                f"go on: airflow archive rebuild {archive} --run {run.partition('+')[0]}",
                f"give it up: airflow archive clean {archive} (removes what is older than a day)",
            )
    if progress.lost:
        yield warning(
            "lost offsets",
            f"{progress.lost:,} offsets were lost for ever",
            "the hours that may lack them are never shown as complete by scheduled runs",
            f"which: airflow archive status {archive} --hours 168",
        )
    if not waiting:
        yield ok("runs", f"{len(progress.runs):,} settled, none unfinished")


def _ago(now: datetime, moment: datetime) -> str:
    hours = (now - moment).total_seconds() / 3600
    return (
        f"{hours * 60:.0f} minutes ago"
        if hours < 2
        else f"{hours:.0f} hours ago"
        if hours < 48
        else f"{hours / 24:.0f} days ago"
    )

"""The restores of an archive, as its ledger has them."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.model.object_keys import restores_prefix, split_restore_document
from kafka_archiver.model.restore import RestorePlan, RestoreReport
from kafka_archiver.values.documents import UtcTime, Value

# Restores that are read: two requests each.
MOST = 20


class RestoreSummary(Value):
    """One restore. `topics`: each source topic with its target. `records`: to be written, or the most if not `exact`.

    `verified`: None before it was read back, `at` that time. `written`: records that are in the target. `differences`:
    what is wrong.
    """

    restore: str
    planned_at: UtcTime
    topics: tuple[tuple[str, str], ...]
    records: int
    exact: bool
    verified: bool | None = None
    at: UtcTime | None = None
    written: int | None = None
    differences: tuple[str, ...] = ()


class Restores(NamedTuple):
    """The last restores, newest first, and how many more there are."""

    restores: tuple[RestoreSummary, ...] = ()
    more: int = 0


def last_restores(ledger: Ledger, most: int = MOST) -> Restores:
    """Read the last planned restores. One listing of all restores, and two requests for each that is read."""
    planned = [
        (stat.modified, place[0])
        for stat in ledger.store.list(restores_prefix(ledger.archive))
        if (place := split_restore_document(ledger.archive, stat.key)) and place[1] == "plan"
    ]
    names = [name for _, name in sorted(planned, reverse=True)]
    with ThreadPoolExecutor(8) as pool:
        summaries = list(pool.map(lambda name: _summary(ledger, name), names[:most]))
    return Restores(tuple(filter(None, summaries)), len(names[most:]))


def _summary(ledger: Ledger, name: str) -> RestoreSummary | None:
    plan = ledger.restore_plan(name)
    return summary_of(plan, ledger.restore_report(name).document) if plan else None


def summary_of(plan: RestorePlan, report: RestoreReport | None) -> RestoreSummary:
    """Return a restore in short; a report of another plan does not count. Pure."""
    summary = RestoreSummary(
        restore=plan.restore,
        planned_at=plan.planned_at,
        topics=tuple((topic.source, topic.topic) for topic in plan.topics),
        records=plan.records,
        exact=plan.exact,
    )
    if report is None or report.plan_digest != plan.digest:
        return summary
    written = sum(partition.records for partition in report.partitions)
    verification = {"verified": report.verified, "at": report.at, "written": written}
    return summary.model_copy(update={**verification, "differences": report.differences})

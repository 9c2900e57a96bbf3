"""Clean up: find and remove what killed attempts, zombies and rebuilds have left in the store."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar

from kafka_archiver.keys import is_ledger, probe_prefix, run_prefix, split_run_document, topic_prefix
from kafka_archiver.leftovers import Leftover, Upload, is_abandoned, of_abandoned, of_settled, stray_uploads
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.plan import settled_so_far

log = logging.getLogger(__name__)
THREADS = 16
OLD = timedelta(days=1)
Item = TypeVar("Item")
Result = TypeVar("Result")
Documents = Mapping[str, Mapping[str, datetime]]


def clean_up(context: Context, now: datetime, since: datetime | None = None) -> list[Leftover]:
    """Remove what is older than a day. Parameters as of `leftovers`. Returns what was removed."""
    found = leftovers(context, now - OLD, since)
    remove(context, found)
    log.info("archive %s: %d leftovers removed", context.archive.archive, len(found))
    return found


def leftovers(context: Context, before: datetime, since: datetime | None = None) -> list[Leftover]:
    """What may be removed, in the order in which it has to be.

    :param before: what has moved since then may be in use.
    :param since: of settled runs look only at those that wrote something since then; None: at all.
    """
    progress, documents = settled_so_far(context), _documents(context)
    unsettled = {
        run: plan
        for run, found in documents.items()
        if run not in progress.runs and "plan" in found and (plan := context.ledger.plan(run))
    }
    topics = {p.topic for p in progress.partitions} | {p.topic for plan in unsettled.values() for p in plan.partitions}
    uploads = _uploads(context, topics)
    given_up = [p for p in unsettled.values() if is_abandoned(p, documents[p.run], uploads, before)]
    settled = [
        run
        for run in progress.runs
        if "intent" in (found := documents.get(run, {}))
        and max(found.values()) < before
        and (since is None or max(found.values()) >= since)
    ]
    return [
        *_probes(context, before),
        *stray_uploads(uploads, progress, unsettled.values(), before),
        *_there(context, _each(lambda run: _of_settled(context, run), settled)),
        *(item for plan in given_up for item in _of_abandoned(context, plan, documents[plan.run], uploads)),
    ]


def remove(context: Context, found: Sequence[Leftover]) -> None:
    """Remove it: uploads and objects first, then documents one after the other, so that a crash can be repeated."""

    def away(item: Leftover) -> None:
        if item.upload_id is not None:
            context.store.abort_upload(item.key, item.upload_id)
        else:
            context.store.delete(item.key)
        log.info("removed %s%s", item.key, " (an upload)" if item.upload_id else "")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(away, (item for item in found if item.upload_id or not is_ledger(item.key))))
    for item in found:
        if not item.upload_id and is_ledger(item.key):
            away(item)


def _documents(context: Context) -> Documents:
    """When the store got each document of each run."""
    found: dict[str, dict[str, datetime]] = {}
    for stat in context.store.list(run_prefix(context.archive.archive)):
        if place := split_run_document(context.archive.archive, stat.key):
            found.setdefault(place[0], {})[place[1]] = stat.modified
    return found


def _uploads(context: Context, topics: Iterable[str]) -> list[Upload]:
    prefixes = [topic_prefix(topic, dead_letter) for topic in sorted(topics) for dead_letter in (False, True)]
    return _each(lambda prefix: [Upload(*u) for u in context.store.list_uploads(prefix)], prefixes)


def _of_settled(context: Context, run: str) -> list[Leftover]:
    ledger = context.ledger
    intent, plan, manifest = ledger.intent(run), ledger.plan(run), ledger.manifest(run)
    if plan is None or manifest is None:
        # Not ours to tidy: the audit says what is missing.
        return []
    return of_settled(plan, manifest, intent, ledger.manifest(plan.supersedes) if plan.supersedes else None)


def _of_abandoned(context: Context, plan: Plan, documents: Iterable[str], uploads: Iterable[Upload]) -> list[Leftover]:
    found = of_abandoned(plan, documents, context.ledger.intent(plan.run), uploads)
    return [item for item in found if item.upload_id or is_ledger(item.key) or context.store.head(item.key)]


def _there(context: Context, found: Sequence[Leftover]) -> list[Leftover]:
    return _each(lambda item: [item] if context.store.head(item.key) else [], found)


def _probes(context: Context, before: datetime) -> list[Leftover]:
    prefix = probe_prefix(context.archive.archive)
    objects = [Leftover("probe", s.key) for s in context.store.list(prefix) if s.modified < before]
    uploads = [
        Leftover("probe", key, None, i) for key, i, began in context.store.list_uploads(prefix) if began < before
    ]
    return [*objects, *uploads]


def _each(work: Callable[[Item], Sequence[Result]], items: Iterable[Item]) -> list[Result]:
    with ThreadPoolExecutor(THREADS) as pool:
        return [result for found in pool.map(work, items) for result in found]

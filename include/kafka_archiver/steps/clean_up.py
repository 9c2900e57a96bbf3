"""Clean up: find and remove what killed attempts, zombies and rebuilds have left in the store."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar

from kafka_archiver.keys import is_ledger, probe_prefix, run_prefix, split_run_document, topic_prefix
from kafka_archiver.ledger import Ledger
from kafka_archiver.leftovers import Leftover, Upload, is_abandoned, of_abandoned, of_settled, stray_uploads
from kafka_archiver.plan import Plan
from kafka_archiver.proof import Progress

log = logging.getLogger(__name__)
THREADS = 16
OLD = timedelta(days=1)
Item = TypeVar("Item")
Result = TypeVar("Result")
Documents = Mapping[str, Mapping[str, datetime]]


def clean_up(ledger: Ledger, now: datetime, since: datetime | None = None) -> list[Leftover]:
    """Remove what is older than a day. Parameters as of `leftovers`. Returns what was removed."""
    found = leftovers(ledger, now - OLD, since)
    remove(ledger, found)
    log.info("archive %s: %d leftovers removed", ledger.archive, len(found))
    return found


def leftovers(ledger: Ledger, before: datetime, since: datetime | None = None) -> list[Leftover]:
    """What may be removed, in the order in which it has to be.

    :param before: what has moved since then may be in use.
    :param since: of settled runs look only at those that wrote something since then; None: at all.
    """
    progress = ledger.progress() or Progress(archive=ledger.archive)
    documents = _documents(ledger)
    unsettled = {
        run: plan
        for run, found in documents.items()
        if run not in progress.runs and "plan" in found and (plan := ledger.plan(run))
    }
    topics = {p.topic for p in progress.partitions} | {p.topic for plan in unsettled.values() for p in plan.partitions}
    uploads = _uploads(ledger, topics)
    given_up = [p for p in unsettled.values() if is_abandoned(p, documents[p.run], uploads, before)]
    settled = [
        run
        for run in progress.runs
        if "intent" in (found := documents.get(run, {}))
        and max(found.values()) < before
        and (since is None or max(found.values()) >= since)
    ]
    return [
        *_probes(ledger, before),
        *stray_uploads(uploads, progress, unsettled.values(), before),
        *_there(ledger, _each(lambda run: _of_settled(ledger, run), settled)),
        *(item for plan in given_up for item in _of_abandoned(ledger, plan, documents[plan.run], uploads)),
    ]


def remove(ledger: Ledger, found: Sequence[Leftover]) -> None:
    """Remove it: uploads and objects first, then documents one after the other, so that a crash can be repeated.

    A rebuild that somebody has committed since it was found stays.
    """
    store = ledger.store
    final = {run for run in {item.run for item in found if item.kind == "rebuild"} if run and ledger.commit(run)}
    found = [item for item in found if item.kind != "rebuild" or item.run not in final]

    def away(item: Leftover) -> None:
        if item.upload_id is not None:
            store.abort_upload(item.key, item.upload_id)
        else:
            store.delete(item.key)
        log.info("removed %s%s", item.key, " (an upload)" if item.upload_id else "")

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(away, (item for item in found if item.upload_id or not is_ledger(item.key))))
    for item in found:
        if not item.upload_id and is_ledger(item.key):
            away(item)


def _documents(ledger: Ledger) -> Documents:
    """When the store got each document of each run."""
    found: dict[str, dict[str, datetime]] = {}
    for stat in ledger.store.list(run_prefix(ledger.archive)):
        if place := split_run_document(ledger.archive, stat.key):
            found.setdefault(place[0], {})[place[1]] = stat.modified
    return found


def _uploads(ledger: Ledger, topics: Iterable[str]) -> list[Upload]:
    prefixes = [topic_prefix(topic, dead_letter) for topic in sorted(topics) for dead_letter in (False, True)]
    return _each(lambda prefix: [Upload(*u) for u in ledger.store.list_uploads(prefix)], prefixes)


def _of_settled(ledger: Ledger, run: str) -> list[Leftover]:
    intent, plan, manifest = ledger.intent(run), ledger.plan(run), ledger.manifest(run)
    if plan is None or manifest is None:
        # Not ours to tidy: the audit says what is missing.
        return []
    return of_settled(plan, manifest, intent, ledger.manifest(plan.supersedes) if plan.supersedes else None)


def _of_abandoned(ledger: Ledger, plan: Plan, documents: Iterable[str], uploads: Iterable[Upload]) -> list[Leftover]:
    found = of_abandoned(plan, documents, ledger.intent(plan.run), uploads)
    return [item for item in found if item.upload_id or is_ledger(item.key) or ledger.store.head(item.key)]


def _there(ledger: Ledger, found: Sequence[Leftover]) -> list[Leftover]:
    return _each(lambda item: [item] if ledger.store.head(item.key) else [], found)


def _probes(ledger: Ledger, before: datetime) -> list[Leftover]:
    prefix = probe_prefix(ledger.archive)
    objects = [Leftover("probe", s.key) for s in ledger.store.list(prefix) if s.modified < before]
    uploads = [Leftover("probe", key, None, i) for key, i, began in ledger.store.list_uploads(prefix) if began < before]
    return [*objects, *uploads]


def _each(work: Callable[[Item], Sequence[Result]], items: Iterable[Item]) -> list[Result]:
    with ThreadPoolExecutor(THREADS) as pool:
        return [result for found in pool.map(work, items) for result in found]

"""Clean up: find and remove what killed attempts, zombies and rebuilds have left in the store.

The next attempt of a run aborts its uploads sooner: `records/writer/finish_uploads.throw_away`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.layouts.registry import prefixes
from kafka_archiver.model.leftovers import Leftover, ListedUpload, leftovers_of, stray_uploads
from kafka_archiver.model.manifest import Commit
from kafka_archiver.model.object_keys import probe_prefix
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.threads import each
from kafka_archiver.work.object_removal import close_intent

log = logging.getLogger(__name__)
MINIMUM_AGE = timedelta(days=1)
Item = TypeVar("Item")
Result = TypeVar("Result")


def clean_up(ledger: Ledger, present: datetime, since: datetime | None = None) -> list[Leftover]:
    """Remove leftovers older than a day. Parameters as of `find_leftovers`. Returns the removed ones."""
    removable = find_leftovers(ledger, present - MINIMUM_AGE, since)
    remove_leftovers(ledger, removable)
    log.info("archive %s: %d leftovers removed", ledger.archive, len(removable))
    return removable


def find_leftovers(ledger: Ledger, before: datetime, since: datetime | None = None) -> list[Leftover]:
    """Return the leftovers that may be removed.

    :param before: leftovers that began later may be in use.
    :param since: look only at runs that ended later; None: at all runs.
    """
    progress = ledger.progress() or Progress(archive=ledger.archive)
    waiting = list(ledger.following(progress.settled))
    given_up = [p for p in waiting if _is_given_up(ledger, p, before)]
    in_use = [p for p in waiting if p not in given_up]
    topics = {p.topic for p in progress.partitions} | {p.topic for plan in waiting for p in plan.partitions}
    # The layout may have changed; uploads of older ones are also aborted by `verify` of their run.
    newest = ledger.planned(progress.settled) if progress.settled else None
    layouts = [plan.settings for plan in (*waiting, *([newest] if newest else ()))]
    uploads = _uploads(ledger, topics, layouts)
    # Rebuilds that were given up are not in use, even if runs before them are not settled.
    ended = [*given_up, *_settled_plans(ledger, progress.settled, since)]
    return [
        *_probes(ledger, before),
        *stray_uploads(uploads, progress, in_use, before, layouts),
        *_existing(ledger, _map_all(lambda plan: _leftovers_of(ledger, plan, before), ended)),
    ]


def remove_leftovers(ledger: Ledger, removable: Sequence[Leftover]) -> None:
    """Remove leftovers. First close the intents of given-up rebuilds, so that no attempt completes more objects."""
    store = ledger.store
    for run in sorted({item.run for item in removable if item.kind == "rebuild" and item.run}):
        close_intent(ledger, run)

    def away(item: Leftover) -> None:
        if item.upload_id is not None:
            store.abort_upload(item.key, item.upload_id)
        else:
            store.delete(item.key)
        log.info("removed %s%s", item.key, " (an upload)" if item.upload_id else "")

    each(away, removable)


def _is_given_up(ledger: Ledger, plan: Plan, before: datetime) -> bool:
    """Return True if an unsettled rebuild was given up before that moment."""
    commit = ledger.commit(plan.run)
    return commit is not None and commit.outcome == "given_up" and commit.committed_at < before


def _settled_plans(ledger: Ledger, last: int, since: datetime | None) -> Iterator[Plan]:
    """Yield the settled runs, newest first."""
    for number in range(last, 0, -1):
        plan = ledger.planned(number)
        commit = ledger.commit(plan.run) if plan else None
        # By the end of the run, not by its planning: a run may have waited for weeks.
        if plan is None or (since and commit and commit.committed_at < since):
            return
        yield plan


def _leftovers_of(ledger: Ledger, plan: Plan, before: datetime) -> list[Leftover]:
    try:
        return _left_by_run(ledger, plan, before)
    except IntegrityError as damage:
        # Without a sound manifest, objects that the archive needs would look like leftovers.
        log.warning("leftovers of run %s are kept: %s", plan.run, damage)
        return []


def _left_by_run(ledger: Ledger, plan: Plan, before: datetime) -> list[Leftover]:
    commit: Commit | None = ledger.commit(plan.run)
    if commit is None or commit.committed_at >= before:
        return []
    manifest = ledger.sound_manifest(plan.run, commit)
    if plan.origin == "repair" and commit.outcome == "given_up":
        # Its manifest names the objects of the run that it would have repaired.
        return []
    superseded = ledger.sound_manifest(plan.supersedes) if plan.supersedes else None
    if commit.outcome == "replaced":
        # Its objects may be kept: by the replacement's manifest, or by `keep_superseded`.
        other = _replacement_of(ledger, commit)
        if other is None or other.keep_superseded:
            return []
        by = ledger.sound_manifest(other.run)
        kept = {o.key for o in by.stored} if by else set()
        left = leftovers_of(plan, commit.outcome, manifest, ledger.intent(plan.run).document, None)
        return [item for item in left if by and item.key not in kept]
    return leftovers_of(plan, commit.outcome, manifest, ledger.intent(plan.run).document, superseded)


def _replacement_of(ledger: Ledger, commit: Commit) -> Plan | None:
    """Return the plan that has come in the place of a replaced run, perhaps over other replaced ones; None: not yet."""
    end: Commit | None = commit
    while end and end.outcome == "replaced":
        commit, end = end, ledger.commit(end.by or "")
    return ledger.plan(commit.by or "") if end and end.outcome == "committed" else None


def _uploads(ledger: Ledger, topics: Iterable[str], layouts: Iterable[Settings]) -> list[ListedUpload]:
    listed = prefixes(topics, Settings(), *layouts)
    return _map_all(lambda prefix: [ListedUpload(*u) for u in ledger.store.list_uploads(prefix)], listed)


def _existing(ledger: Ledger, candidates: Sequence[Leftover]) -> list[Leftover]:
    return _map_all(lambda item: [item] if ledger.store.head(item.key) else [], candidates)


def _probes(ledger: Ledger, before: datetime) -> list[Leftover]:
    prefix = probe_prefix(ledger.archive)
    objects = [Leftover("probe", s.key) for s in ledger.store.list(prefix) if s.modified < before]
    uploads = [Leftover("probe", key, None, i) for key, i, began in ledger.store.list_uploads(prefix) if began < before]
    return [*objects, *uploads]


def _map_all(work: Callable[[Item], Sequence[Result]], items: Iterable[Item]) -> list[Result]:
    return [result for results in each(work, items) for result in results]

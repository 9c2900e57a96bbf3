"""Removes the objects of a run that does not count, so that no attempt can bring them back."""

import logging
from collections.abc import Collection, Iterator
from functools import partial

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.model.manifest import Intent
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.writer.finish_uploads import throw_away
from kafka_archiver.store import Store
from kafka_archiver.values.threads import each

log = logging.getLogger(__name__)
TRIES = 20


def remove_objects(ledger: Ledger, run: str, kept: Collection[str] = ()) -> None:
    """Remove the objects of a run that was replaced or given up.

    First close the intent, so that no attempt completes uploads; then abort the uploads; then remove the objects.

    :param kept: keys of objects that stay, because a manifest that counts names them.
    """
    plan = ledger.plan(run)
    keys = visible_keys(ledger, run, close_intent(ledger, run)) - set(kept)
    if plan:
        throw_away(ledger.store, ledger.written_as(plan))
    refused = [error for error in each(partial(_delete, ledger.store), sorted(keys)) if error]
    if refused:
        # They do no harm, and the archive goes on. The audit names them.
        log.warning("%d objects of run %s stay, which does not count any more: %s", len(refused), run, refused[0])
    log.info("removed %d objects of run %s, which does not count any more", len(keys) - len(refused), run)


def _delete(store: Store, key: str) -> PermanentError | None:
    """Delete an object. Returns why the store refuses it."""
    try:
        store.delete(key)
    except PermanentError as error:
        return error
    return None


def replaced_runs(ledger: Ledger, plan: Plan) -> Iterator[str]:
    """Yield the run in whose place a run comes, and those before that in whose place that one was to come."""
    run = plan.supersedes
    while run:
        yield run
        commit = ledger.commit(run)
        before = ledger.plan(run) if commit and commit.outcome == "replaced" else None
        run = before.supersedes if before else None


def visible_keys(ledger: Ledger, run: str, intent: Intent | None) -> set[str]:
    """Return the keys of the objects that attempts of a run may have made visible."""
    manifest = ledger.manifest(run)
    return {*(intent.keys if intent else ()), *(o.key for o in (manifest.stored if manifest else ()))}


def close_intent(ledger: Ledger, run: str) -> Intent:
    """Close a run's intent for ever."""
    for _ in range(TRIES):
        before = ledger.intent(run)
        known = before.document or Intent(archive=ledger.archive, run=run, attempt=1, keys=())
        if known.closed:
            return known
        closed = known.model_copy(update={"attempt": known.attempt + bool(before.document), "closed": True})
        if ledger.put_intent(closed, before):
            return closed
    raise TransientError(f"attempts of run {run} were faster {TRIES} times to change its intent; try again")

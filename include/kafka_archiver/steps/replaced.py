"""What a run has left that does not count: it goes, and nobody brings it back."""

import logging
from collections.abc import Collection, Iterator

from kafka_archiver.errors import TransientError
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Intent
from kafka_archiver.plan import Plan
from kafka_archiver.writer.commit import throw_away
from kafka_archiver.writer.threads import each

log = logging.getLogger(__name__)
THREADS = 16
TRIES = 20


def remove_objects(ledger: Ledger, run: str, kept: Collection[str] = ()) -> None:
    """Remove the objects of a run that another one has replaced, or that was given up.

    First nobody may complete any of them any more; then what attempts have sent goes, then the objects.

    :param kept: keys of objects that stay, since a manifest that counts names them.
    """
    plan = ledger.plan(run)
    keys = visible(ledger, run, close(ledger, run)) - set(kept)
    if plan:
        throw_away(ledger.store, ledger.written_as(plan))
    each(ledger.store.delete, sorted(keys), THREADS)
    log.info("%d objects of run %s, which does not count any more, removed", len(keys), run)


def replaced_by(ledger: Ledger, plan: Plan) -> Iterator[str]:
    """The run in whose place a run comes, and those before that in whose place that one was to come."""
    run = plan.supersedes
    while run:
        yield run
        made = ledger.commit(run)
        before = ledger.plan(run) if made and made.outcome == "replaced" else None
        run = before.supersedes if before else None


def visible(ledger: Ledger, run: str, intent: Intent | None) -> set[str]:
    """The keys of the objects that attempts of a run may have made visible."""
    manifest = ledger.manifest(run)
    return {*(intent.keys if intent else ()), *(o.key for o in (manifest.stored if manifest else ()))}


def close(ledger: Ledger, run: str) -> Intent:
    """Take a run's intent for good."""
    for _ in range(TRIES):
        before = ledger.intent(run)
        known = before.document or Intent(archive=ledger.archive, run=run, attempt=1, keys=())
        if known.closed:
            return known
        closed = known.model_copy(update={"attempt": known.attempt + bool(before.document), "closed": True})
        if ledger.put_intent(closed, before):
            return closed
    raise TransientError(f"attempts of run {run} have taken its intent {TRIES} times; try again")

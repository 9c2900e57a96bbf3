"""Publish: make the objects of a run visible, all of them before the manifest.

Write order: intent.json (whose uploads count, and which keys may appear), the objects, intent.json again (all are
visible), manifest.json. A crash between any two leaves keys that the intent names, and the next attempt writes the same
keys again. If Kafka compacts in between, two attempts at once may have different bytes. So an attempt first takes the
intent from the attempt before, and aborts the uploads which that one has not completed; only then it completes its own.
What only earlier attempts wrote is removed once the intent says that all is visible: no later attempt writes it then.
"""

import logging
from collections.abc import Sequence
from dataclasses import asdict

from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import PermanentError, TransientError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.manifest import Intent, ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.writer.finish_uploads import complete, throw_away
from kafka_archiver.records.writer.result import ChunkResult
from kafka_archiver.store import Store

log = logging.getLogger(__name__)


def publish(
    plan: Plan,
    results: Sequence[ChunkResult],
    accounts: Sequence[ChunkAccount],
    policies: ReadPolicies,
    intent: Stored[Intent],
    store: Store,
    ledger: Ledger,
    kept: Sequence[ObjectEntry] = (),
) -> Intent:
    """Complete the uploads of an attempt. Returns its intent, from which the manifest follows.

    :param intent: of the attempt before, as it was read.
    :param kept: objects of the attempt before that stay.
    :raises TransientError: another attempt has begun to complete the run.
    """
    before = intent.document or Intent(archive=plan.archive, run=plan.run, attempt=1, keys=())
    written = {o.upload.key for result in results for o in result.objects} | {entry.key for entry in kept}
    stale = set(before.keys) - written
    own = Intent(
        archive=plan.archive,
        run=plan.run,
        attempt=before.attempt + 1 if intent.document else 1,
        policies=asdict(policies),
        keys=tuple(sorted(written | stale)),
        objects=(*kept, *(o.entry("") for result in results for o in result.objects)),
        chunks=tuple(accounts),
    )
    taken = take_intent(ledger, own, intent)
    if intent.document:
        # From now on the attempt before cannot complete anything, whenever it wakes up.
        throw_away(store, plan, {o.upload.upload_id for result in results for o in result.objects})
    entries = [*kept, *complete(results, store)]
    done = own.model_copy(update={"done": True, "objects": tuple(sorted(entries, key=lambda o: o.key))})
    take_intent(ledger, done, taken)
    remove_stale(done, store)
    return done


def remove_stale(done: Intent, store: Store) -> None:
    """Remove what earlier attempts wrote and this one did not. Harmless however late: the manifest follows from it."""
    for key in sorted(set(done.keys) - {entry.key for entry in done.objects}):
        log.info("removed %s: an earlier attempt wrote it; its records have another fate now", key)
        store.delete(key)


def refuse_closed_intent(intent: Intent | None) -> None:
    """Refuse a run that was replaced.

    :raises PermanentError: another run has taken this one's place.
    """
    if intent and intent.closed:
        raise PermanentError(
            f"run {intent.run} of archive {intent.archive} has been replaced by another run meanwhile: none of its "
            "objects become visible any more"
        )


def take_intent(ledger: Ledger, intent: Intent, before: Stored[Intent]) -> Stored[Intent]:
    """Take the intent, and return it as stored.

    :raises TransientError: another attempt has taken it since `before` was read.
    """
    taken = ledger.put_intent(intent, before)
    if taken is None:
        raise TransientError(
            f"another attempt of run {intent.run} completes its objects now; the next attempt sees what it wrote"
        )
    return taken

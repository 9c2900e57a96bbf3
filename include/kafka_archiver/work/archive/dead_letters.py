"""A replay of dead letters: read them from the store, and archive their records by the plan's settings. No Kafka.

Write order as in `publish`. The old dead letters stay until `close_hours`, so a record is never in neither.
"""

import logging

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import ArchiverError, IntegrityError, TransientError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import DeadLetters, Plan
from kafka_archiver.model.replayed import manifest_of, with_dead_letters
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import WriteJob
from kafka_archiver.store import Store
from kafka_archiver.store.object_check import compare
from kafka_archiver.values.threads import refused
from kafka_archiver.work.archive.engine import Engine, require_all_results
from kafka_archiver.work.archive.finish import intended_manifest
from kafka_archiver.work.archive.publish import publish, refuse_closed_intent
from kafka_archiver.work.archive.replay import replay
from kafka_archiver.work.archive.set_aside import set_aside_of

log = logging.getLogger(__name__)


def archive_dead_letters(plan: Plan, engine: Engine, policies: ReadPolicies, store: Store, ledger: Ledger) -> Manifest:
    """Write the objects and the manifest of a replay of dead letters that has no manifest yet.

    :raises BadRecordError: a record still fails, and `policies.bad_record` is `fail`. Nothing has changed.
    :raises IntegrityError: dead letters are gone or damaged.
    :raises TransientError: another attempt has begun to complete the run, or has ended it.
    """
    before = ledger.sound_manifest(plan.supersedes or "")
    if before is None:
        raise IntegrityError(
            f"run {plan.supersedes} of archive {plan.archive}, which {plan.run} replays, has no manifest"
        )
    if missing := missing_dead_letters(plan, store):
        if ledger.manifest(plan.run) or ledger.commit(plan.run):
            raise TransientError(f"another attempt has ended run {plan.run} meanwhile")
        raise IntegrityError(
            f"{missing[0].key} ({missing[0].rows} dead letters of run {plan.supersedes}) is missing or not what the "
            "manifest says.",
            *advise(repair(plan.archive), " mends it or records it as lost; then replay the dead letters again"),
        )
    chunks = plan.chunks_of_letters()
    log.info("replaying %d dead letters of run %s", sum(item.rows for item in plan.letters), plan.supersedes)
    aside = set_aside_of(ledger, plan.run, None)
    job = WriteJob.of(plan, policies.bad_record, ledger.schemas(plan.fingerprints), ledger.keys_of(plan), aside)
    results = engine.write(plan, chunks, job)
    try:
        require_all_results(plan, chunks, results)
        old = {a.place: a for a in before.chunks}
        accounts = [with_dead_letters(old[r.account.place], r.account) for r in results]
        intent = ledger.intent(plan.run)
        if stored := ledger.manifest(plan.run) or intended_manifest(plan, intent.document, ledger):
            return replay(plan, stored, results, store, ledger)
        refuse_closed_intent(intent.document)
        accounts.sort(key=lambda a: a.place)
        done = publish(plan, results, accounts, policies, intent, store, ledger)
    except ArchiverError:
        abort(results, store)
        raise
    manifest = ledger.create_manifest(manifest_of(plan, before, done))
    log.info(
        "run %s: of %d dead letters of run %s, %d are dead letters again",
        plan.run,
        before.account["dead_lettered"],
        plan.supersedes,
        manifest.account["dead_lettered"],
    )
    return manifest


def missing_dead_letters(plan: Plan, store: Store) -> list[DeadLetters]:
    """Return the objects of dead letters that a plan reads and that are not in the store as promised."""
    return refused(lambda item: compare(store, item.key, item.bytes, item.checksum).same, plan.letters)

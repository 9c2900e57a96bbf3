"""Replay: read a run that has its manifest again, and write again those objects that are missing or damaged."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import repair
from kafka_archiver.messages.errors import IntegrityError
from kafka_archiver.model.manifest import Intent, Manifest, ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.writer.finish_uploads import abort, complete
from kafka_archiver.records.writer.result import ChunkResult, WrittenObject
from kafka_archiver.store import Store
from kafka_archiver.store.object_check import compare
from kafka_archiver.work.archive.publish import refuse_closed_intent, take_intent

log = logging.getLogger(__name__)


def matching_entry(item: ObjectEntry, store: Store) -> ObjectEntry | None:
    """Return the entry with the object's present ETag; None when the stored object is not what the entry says."""
    comparison = compare(store, item.key, item.bytes, item.checksum, item.etag)
    return item.model_copy(update={"etag": comparison.stat.etag}) if comparison.same and comparison.stat else None


def replay(plan: Plan, stored: Manifest, results: Sequence[ChunkResult], store: Store, ledger: Ledger) -> Manifest:
    """Write missing and damaged objects again, if the records give the same bytes. Returns the manifest, unchanged.

    :param stored: the run's manifest.
    :raises IntegrityError: neither the store nor Kafka has an object.
    :raises TransientError: another attempt has begun to complete the run.
    """
    promised = {o.key: o for o in stored.stored}

    def as_promised(item: WrittenObject) -> bool:
        return item.upload.key in promised and item.upload.checksum == promised[item.upload.key].checksum

    # Objects that are as promised stay: under KMS, writing them again would change their ETags.
    intact = {item.key for item in stored.stored if matching_entry(item, store)}
    again = _with_objects(results, lambda item: as_promised(item) and item.upload.key not in intact)
    abort(_with_objects(results, lambda item: not as_promised(item) or item.upload.key in intact), store)
    if again:
        retake_intent(ledger, plan, stored)
    rewritten = {e.key for e in complete(again, store)}
    read = sum(as_promised(item) for result in results for item in result.objects)
    other = {item.upload.key for result in results for item in result.objects} - rewritten
    for item in stored.stored:
        if item.key not in intact | rewritten:
            if by := ledger.superseded_by(plan.run):
                log.warning("run %s is left alone: %s has taken its place meanwhile", plan.run, by)
                break
            cause = (
                "its records give other bytes now (Kafka has removed records since, a library has another version, or "
                "a transform looks at more than the record)"
                if item.key in other
                else "Kafka does not have its records any more"
            )
            raise IntegrityError(
                f"{item.key} is missing or not what the manifest says, and {cause} (expected {item.rows} from offset "
                f"{item.first_offset}).",
                *advise(
                    "Restore the object from a version or copy of the bucket; if there is none: ",
                    repair(plan.archive, item.key),
                ),
            )
    log.info(
        "replayed run %s: %d of %d objects have the same bytes again; %d were missing or damaged and are rewritten",
        plan.run,
        read,
        len(promised),
        len(rewritten),
    )
    if read < len(promised):
        log.info(
            "%d objects verified in the store instead: Kafka no longer has all their records", len(promised) - read
        )
    return stored


def retake_intent(ledger: Ledger, plan: Plan, stored: Manifest) -> None:
    """Take the intent, because a run that replaces this one closes it before it removes objects."""
    before = ledger.intent(plan.run)
    refuse_closed_intent(before.document)
    # A repair has no intent before its first replay.
    known = before.document or Intent(
        archive=plan.archive,
        run=plan.run,
        attempt=1,
        done=True,
        policies=stored.policies,
        keys=tuple(o.key for o in stored.stored),
        objects=stored.stored,
        chunks=stored.chunks,
    )
    take_intent(ledger, known.model_copy(update={"attempt": known.attempt + bool(before.document)}), before)


def _with_objects(results: Sequence[ChunkResult], condition: Callable[[WrittenObject], bool]) -> list[ChunkResult]:
    return [replace(result, objects=tuple(filter(condition, result.objects))) for result in results]

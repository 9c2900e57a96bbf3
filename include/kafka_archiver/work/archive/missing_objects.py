"""Write missing objects again for a run whose objects several plans wrote: one with replayed dead letters.

Each object is written by the plan that wrote it: from Kafka, or from the dead letters, as long as they are there. Dead
letters that a final replay has archived are gone; then their records come from Kafka, too, as far as it has them: they
are those that the plans before rejected. For an object that nobody has, `replay` says what to do.
"""

import logging
from dataclasses import replace

from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import plan_anew
from kafka_archiver.messages.errors import ArchiverError, ConfigError, PermanentError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.manifest import Manifest
from kafka_archiver.model.plan import Chunk, Plan
from kafka_archiver.records.formats import get_format
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult, WriteJob
from kafka_archiver.store import Store
from kafka_archiver.values.threads import refused
from kafka_archiver.work.archive.dead_letters import missing_dead_letters
from kafka_archiver.work.archive.engine import Engine, require_all_results
from kafka_archiver.work.archive.logs import read_logs
from kafka_archiver.work.archive.readable_chunks import policies_of_run, readable_chunks
from kafka_archiver.work.archive.replay import matching_entry, replay
from kafka_archiver.work.archive.set_aside import set_aside_of

log = logging.getLogger(__name__)


def require_encoding(plan: Plan) -> None:
    """Require the encoding of the plan.

    :raises PermanentError: this release would write other bytes.
    """
    try:
        encoding = get_format(plan.settings.format).encoding
    except ConfigError:
        # Writing fails for the same reason, and its error says how to go on.
        return
    if plan.settings.encoding != encoding:
        raise PermanentError(
            f"run {plan.run} was planned for encoding {plan.settings.encoding}, this code writes {encoding}: its "
            "bytes would differ.",
            *advise("To plan the run anew: ", plan_anew(plan.archive, plan.run)),
        )


def write_missing_objects(
    plan: Plan, stored: Manifest, engine: Engine, cluster: Cluster, store: Store, ledger: Ledger
) -> Manifest:
    """Write the missing and damaged objects of a manifest again. Raises as `replay`."""
    gone = refused(lambda item: matching_entry(item, store), stored.stored)
    if not gone:
        log.info("run %s: all %d objects are there, each with its checksum", plan.run, len(stored.stored))
        return stored
    writers = {writer.run: writer for writer in (ledger.writer_of(plan, item.key) for item in gone)}
    results: list[ChunkResult] = []
    try:
        for writer in writers.values():
            require_encoding(writer)
            wrote_before = ledger.manifest(writer.run)
            policies, aside = (
                policies_of_run(ReadPolicies(), writer, wrote_before),
                set_aside_of(ledger, writer.run, wrote_before),
            )
            schemas, keys = ledger.schemas(writer.fingerprints), ledger.keys_of(writer)
            job = WriteJob.of(writer, policies.bad_record, schemas, keys, aside)
            source = writer
            if missing_dead_letters(writer, store):
                # Kafka may have their records.
                source = writer.model_copy(update={"letters": ()})
                job = replace(job, rejected_by=_rejected_by(writer, ledger))
            chunks = _readable_again(writer, source, cluster, ledger)
            chunks = aside.not_given_up(chunks) if aside and not source.letters else chunks
            wrote = engine.write(source, chunks, job) if chunks else []
            results += wrote
            require_all_results(source, chunks, wrote)
        return replay(plan, stored, results, store, ledger)
    except ArchiverError:
        abort(results, store)
        raise


def _rejected_by(writer: Plan, ledger: Ledger) -> tuple[WriteJob, ...]:
    """Return the jobs that rejected the records of a plan one after the other; none if it did not replay dead
    letters.
    """
    # A replay replays all dead letters of a run, so one plan wrote those that are left.
    by = next((ledger.writer_of(writer, item.key) for item in writer.letters), None)
    if by is None:
        return ()
    if by.settings.transform and by.settings.transform.sql:
        raise PermanentError(
            f"the dead letters of run {by.run} are gone, and Spark's SQL had a part in which records they were, so "
            "they cannot be told from the others in Kafka.",
            *advise("To plan the run anew: ", plan_anew(by.archive, by.run)),
        )
    aside = set_aside_of(ledger, by.run, ledger.manifest(by.run))
    return (*_rejected_by(by, ledger), WriteJob.of(by, "dead_letter", ledger.schemas(by.fingerprints), aside=aside))


def _readable_again(writer: Plan, source: Plan, cluster: Cluster, ledger: Ledger) -> list[Chunk]:
    """Return the chunks of a plan that can be read again, all of them or as far as Kafka has them.

    :param source: the plan as it is read: without its dead letters if they come from Kafka.
    """
    if source.letters:
        return source.chunks_of_letters()
    chunks = readable_chunks(source, ReadPolicies(), read_logs(cluster, source, ledger.progress(), True), True)
    if not writer.letters:
        return chunks
    lettered = {(chunk.name, chunk.start) for chunk in writer.chunks_of_letters()}
    wholes = [(chunk, source.chunk_of(chunk.name, chunk.start)) for chunk in chunks]
    return [chunk for chunk, whole in wholes if whole and (whole.name, whole.start) in lettered]

"""Write missing objects again for a run whose objects several plans wrote: one with replayed dead letters.

Each object is written by the plan that wrote it: from Kafka, or from the dead letters, as long as they are there. Dead
letters that a final replay has archived are gone; for a missing object of theirs, `replay` says what to do.
"""

import logging
from typing import TYPE_CHECKING

from kafka_archiver.advice import plan_anew
from kafka_archiver.errors import ArchiverError, PermanentError
from kafka_archiver.kafka.cluster import Cluster
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import Manifest, ObjectEntry
from kafka_archiver.plan import ENCODING, Chunk, Plan
from kafka_archiver.steps.archive.letters import not_there
from kafka_archiver.steps.archive.logs import read_logs
from kafka_archiver.steps.archive.policies import ReadPolicies
from kafka_archiver.steps.archive.readable import readable
from kafka_archiver.steps.archive.replay import replay, stored_as
from kafka_archiver.steps.archive.results import require_all
from kafka_archiver.store import Store
from kafka_archiver.writer.commit import abort
from kafka_archiver.writer.result import ChunkResult, WriteJob
from kafka_archiver.writer.threads import each

if TYPE_CHECKING:
    from kafka_archiver.steps.archive.step import Engine

log = logging.getLogger(__name__)
THREADS = 16


def require_encoding(plan: Plan) -> None:
    """:raises PermanentError: this release would write other bytes."""
    if plan.settings.encoding != ENCODING:
        raise PermanentError(
            f"run {plan.run} was planned for encoding {plan.settings.encoding}, this code writes {ENCODING}: its "
            f"bytes would differ. To plan the run anew: {plan_anew(plan.archive, plan.run)}"
        )


def write_missing(
    plan: Plan, stored: Manifest, engine: "Engine", cluster: Cluster, store: Store, ledger: Ledger
) -> Manifest:
    """Write the missing and damaged objects of a manifest again. Raises as `replay`."""

    def missing(item: ObjectEntry) -> ObjectEntry | None:
        return None if stored_as(item, store) else item

    gone = [item for item in each(missing, stored.stored, THREADS) if item]
    if not gone:
        log.info("run %s: all %d objects are there, each with its checksum", plan.run, len(stored.stored))
        return stored
    writers = {writer.run: writer for writer in (ledger.writer_of(plan, item.key) for item in gone)}
    results: list[ChunkResult] = []
    try:
        for writer in writers.values():
            require_encoding(writer)
            theirs = ReadPolicies().for_run(writer, ledger.manifest(writer.run))
            chunks = _there(writer, cluster, store, ledger)
            job = WriteJob.of(writer, theirs.bad_record, ledger.schemas(writer.fingerprints))
            wrote = engine.write(writer, chunks, job) if chunks else []
            results += wrote
            require_all(writer, chunks, wrote)
        return replay(plan, stored, results, store, ledger)
    except ArchiverError:
        abort(results, store)
        raise


def _there(writer: Plan, cluster: Cluster, store: Store, ledger: Ledger) -> list[Chunk]:
    """The chunks that can be read again, all of them or as far as Kafka has them."""
    if writer.letters:
        return [] if not_there(writer, store) else writer.chunks_of_letters()
    return readable(writer, ReadPolicies(), read_logs(cluster, writer, ledger.progress(), True), True)

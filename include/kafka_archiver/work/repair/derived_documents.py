"""Compute proofs, progress and `settled.json` again from the committed runs, and write those that differ."""

import logging
from collections.abc import Iterator

from pydantic import ValidationError

from kafka_archiver.audit.derived import facts, settled_runs
from kafka_archiver.audit.inspection.promise_table import PromiseTable
from kafka_archiver.audit.inspection.promises import Replay
from kafka_archiver.ledger.documents import Stored
from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.errors import DocumentError, IntegrityError
from kafka_archiver.model.object_keys import hour_document, progress_document, run_document
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.proof import HourProof, paged
from kafka_archiver.work.close_hours import is_of_the_line, load_settling, put_proof

log = logging.getLogger(__name__)


def derive_documents(ledger: Ledger) -> list[str]:
    """Write the wrong and missing documents. Returns their keys. Keeps what runs at work have written meanwhile.

    :raises IntegrityError: a document of a committed run is not the one that was committed.
    """
    return list(_derive_each(ledger))


def _derive_each(ledger: Ledger) -> Iterator[str]:
    before = ledger.store.version(progress_document(ledger.archive))
    stored = _parsed_progress(ledger, before and before.data)
    with PromiseTable.open() as table:
        replay = Replay(ledger.archive, table)
        for number in range(1, _count_settled(ledger, stored) + 1):
            yield from _settle_again(ledger, replay, number)
        for hour in sorted({*ledger.hours(), *table.hours()}, key=lambda hour: -1 if hour is None else hour):
            yield from _mend_proof(ledger, table, hour, replay.progress.settled)
    if replay.progress.settled and stored != replay.progress:
        key, data = progress_document(ledger.archive), replay.progress.to_bytes()
        if ledger.store.create(key, data) if before is None else ledger.store.replace(key, data, before.etag):
            yield key


def _parsed_progress(ledger: Ledger, data: bytes | None) -> Progress | None:
    try:
        return None if data is None else Progress.from_json(data, progress_document(ledger.archive))
    except DocumentError:
        return None


def _count_settled(ledger: Ledger, progress: Progress | None) -> int:
    """Return the number of settled runs; without the progress, up to the last run with a `settled.json`."""
    if progress:
        done = sum("settled" in documents for documents in ledger.runs().values())
        return settled_runs(progress.settled, max(ledger.numbers(), default=0), done)
    settled = (p.number for p in ledger.following(0) if ledger.store.head(_settled_key(ledger, p.run)))
    return max(settled, default=0)


def _settled_key(ledger: Ledger, run: str) -> str:
    return run_document(ledger.archive, run, "settled")


def _settle_again(ledger: Ledger, replay: Replay, number: int) -> Iterator[str]:
    """Settle the next run again."""
    plan = ledger.planned(number)
    commit = ledger.commit(plan.run) if plan else None
    if plan is None or commit is None:
        what = f"place {number} of the line" if plan is None else f"the commit of run {plan.run}"
        raise IntegrityError(
            f"{what} of archive {ledger.archive} is gone, so its hours are unknown: restore the document from a "
            "version or copy of the store"
        )
    change = load_settling(ledger, replay.progress, plan, commit)
    settled = replay.settle(plan, commit, change.manifest, change.superseded, ahead=False)
    key, data = _settled_key(ledger, plan.run), settled.to_json()
    if ledger.store.get(key) != data:
        ledger.store.put(key, data)
        yield key


def _mend_proof(ledger: Ledger, table: PromiseTable, hour: int | None, settled: int) -> Iterator[str]:
    key = hour_document(ledger.archive, hour)
    version = ledger.store.version(key)
    try:
        stored = HourProof.from_json(version.data, key) if version else None
        present = (stored, ledger.contributions(stored)) if stored else None
        if stored and stored.hour != hour:
            present = None
        elif stored and stored.number > settled and is_of_the_line(ledger, stored):
            return
    except (DocumentError, IntegrityError, ValidationError):
        present = None
    proof = table.proof(hour)
    if proof is None:
        if version and ledger.store.delete_version(key, version.etag):
            yield key
        return
    derived = (proof, table.contributions(proof))
    if present and facts(present) == facts(derived):
        return
    # First without pages, because the stored proof may name the old ones; then the pages, beside a sound proof.
    repaired: HourProof = proof.model_copy(update={"runs": derived[1], "pages": (), "replaced": ()})
    if ledger.put_hour(repaired, Stored(None, version and version.etag)):
        yield key
        rewritten = ledger.stored_hour(hour)
        if rewritten.document and paged(rewritten.document)[1]:
            put_proof(ledger, rewritten.document, rewritten)

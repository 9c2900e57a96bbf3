"""Finish: what the driver does once every chunk has been written: make the objects visible, then the manifest.

Write order: intent.json (whose uploads count, and which keys may appear), the objects, intent.json again (all are
visible), manifest.json. A crash between any two leaves keys that the intent names, and the next attempt writes the same
keys again. Two attempts at once have other bytes where Kafka has compacted in between: so whoever completes uploads
takes the intent first, from whoever had it, and throws away what that one has not completed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

from kafka_archiver.advice import choose, go_on, repair
from kafka_archiver.errors import IntegrityError, PermanentError, PolicyError, TransientError
from kafka_archiver.keys import split_object_key
from kafka_archiver.ledger import Ledger, Stored
from kafka_archiver.manifest import ChunkAccount, Intent, Manifest, ObjectEntry
from kafka_archiver.plan import BadRecord, Plan
from kafka_archiver.ranges import Range, TopicPartition
from kafka_archiver.store import Store
from kafka_archiver.store.compare import compare
from kafka_archiver.writer.commit import abort, complete, throw_away
from kafka_archiver.writer.result import ChunkResult, WrittenObject

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """The policies that decide while a run is read: those of the archive today, or else a failed run could not go on.

    The manifest has them, and a replay keeps to those.
    """

    lost_offsets: Literal["fail", "record_loss"] = "fail"
    bad_record: BadRecord = "fail"

    def for_run(self, plan: Plan, stored: Manifest | None) -> Self:
        """What counts for a run with this manifest, if it has one. A rebuild loses nothing, whatever the policy."""
        known = {**asdict(self), **(stored.policies if stored else {})}
        loses_nothing = plan.supersedes and not plan.takes_over
        return type(self)(**{**known, **({"lost_offsets": "fail"} if loses_nothing else {})})


def finish(
    plan: Plan,
    stored: Manifest | None,
    results: Sequence[ChunkResult],
    logs: Mapping[TopicPartition, Range],
    choice: Choice,
    store: Store,
    ledger: Ledger,
) -> Manifest:
    """Complete the run's objects and write its manifest; a run that has one already is replayed against it.

    :param stored: the run's manifest, when the reading began.
    :param logs: what each partition's log has now, after everything was read.
    :raises PolicyError: offsets may have been lost while they were read.
    :raises IntegrityError: a replay does not give what the manifest says, and the store does not have it either; or
        a rebuild has fewer records than what it would replace.
    :raises TransientError: another attempt has begun to complete the run meanwhile.
    """
    intent = ledger.intent(plan.run)
    stored = ledger.manifest(plan.run) or stored or as_intended(plan, intent.document, ledger)
    if stored is not None:
        return _replay(plan, stored, results, store, ledger)
    _refuse_closed(intent.document)
    found = {result.chunk: result.account for result in results}
    accounts = [
        _prove_absence(choice, found.get(chunk) or ChunkAccount.nothing_there(chunk), logs, plan.archive)
        for chunk in plan.chunks()
    ]
    if plan.supersedes and not plan.takes_over:
        _refuse_fewer(plan, accounts, ledger.manifest(plan.supersedes))
    before = intent.document or Intent(archive=plan.archive, run=plan.run, attempt=1, keys=())
    kept = {account.chunk: _whole(account, before, store) for account in accounts if account.lost}
    adopted = {chunk: some for chunk, some in kept.items() if some}
    accounts = [adopted[a.chunk][0] if a.chunk in adopted else a for a in accounts]
    _refuse_to_lose(plan, accounts, before.keys, store)
    abort([r for r in results if r.chunk in adopted], store)
    results = [r for r in results if r.chunk not in adopted]
    entries = [entry for _, some in adopted.values() for entry in some]
    written = {o.upload.key for result in results for o in result.objects} | {entry.key for entry in entries}
    stale = set(before.keys) - written
    ours = Intent(
        archive=plan.archive,
        run=plan.run,
        attempt=before.attempt + 1 if intent.document else 1,
        policies=asdict(choice),
        keys=tuple(sorted(written | stale)),
        objects=(*entries, *(o.entry("") for result in results for o in result.objects)),
        chunks=tuple(accounts),
    )
    taken = _take(ledger, ours, intent)
    if intent.document:
        # Nothing of the attempt before is completed from now on, whenever it wakes up.
        throw_away(store, plan, {o.upload.upload_id for result in results for o in result.objects})
    entries += complete(results, store)
    for key in sorted(stale):
        log.info("%s: an earlier attempt wrote it, this one has no records for it (compacted since): removed", key)
        store.delete(key)
    done = ours.model_copy(update={"done": True, "objects": tuple(sorted(entries, key=lambda o: o.key))})
    _take(ledger, done, taken)
    return ledger.create_manifest(done.manifest(plan))


def as_intended(plan: Plan, intent: Intent | None, ledger: Ledger) -> Manifest | None:
    """The manifest of an attempt that made everything visible, and died before it could say so."""
    if intent is None or not intent.done or plan.origin == "repair":
        return None
    log.info("run %s: attempt %d has written everything: its manifest is written now", plan.run, intent.attempt)
    return ledger.create_manifest(intent.manifest(plan))


def _refuse_closed(intent: Intent | None) -> None:
    if intent and intent.closed:
        raise PermanentError(
            f"run {intent.run} of archive {intent.archive} has been replaced by another one meanwhile: nothing of it "
            "is made visible any more"
        )


def _take(ledger: Ledger, ours: Intent, before: Stored[Intent]) -> Stored[Intent]:
    taken = ledger.put_intent(ours, before)
    if taken is None:
        raise TransientError(
            f"another attempt of run {ours.run} completes its objects now; the next attempt sees what it wrote"
        )
    return taken


def _whole(account: ChunkAccount, before: Intent, store: Store) -> tuple[ChunkAccount, tuple[ObjectEntry, ...]] | None:
    """What an earlier attempt has of a chunk that Kafka has not all of any more, if all of its objects are there."""
    earlier = next((a for a in before.chunks if a.chunk == account.chunk), None)
    if earlier is None or earlier.lost >= account.lost:
        return None
    place = (account.topic, account.partition, account.start)
    entries = [o for o in before.objects if (o.topic, o.partition, o.chunk_start) == place]
    there = [found for entry in entries if (found := _there(entry, store))]
    if len(there) < len(entries):
        return None
    log.info("%s: an earlier attempt wrote all of it before Kafka removed some: kept", account.chunk)
    return earlier, tuple(there)


def _refuse_to_lose(plan: Plan, accounts: Sequence[ChunkAccount], earlier: Sequence[str], store: Store) -> None:
    """An object of an earlier attempt may hold what Kafka has lost since: then it is neither replaced nor removed."""
    losing = {(a.topic, a.partition, a.start, a.generation) for a in accounts if a.lost}
    for key in earlier:
        place = split_object_key(key)
        if place and place[:4] in losing and store.head(key):
            raise IntegrityError(
                f"{key} was written by an earlier attempt of this run, and Kafka does not have all its records any "
                f"more: writing the chunk again would lose them. Copy the object to another place and delete it here; "
                f"then {go_on(plan.archive, plan.run)}"
            )


def _refuse_fewer(plan: Plan, accounts: Sequence[ChunkAccount], old: Manifest | None) -> None:
    """Compaction may have removed records since they were archived: what a rebuild has not, the archive keeps."""
    before, now = _absent(old.chunks if old else ()), _absent(accounts)
    for name, count in sorted(now.items()):
        if count > before.get(name, 0):
            raise IntegrityError(
                f"run {plan.supersedes} cannot be rebuilt: Kafka has {count - before.get(name, 0)} records of {name} "
                "less than were archived (compacted since?). What is stored stays as it is; "
                f"`airflow archive clean {plan.archive}` removes the attempt"
            )


def _absent(accounts: Sequence[ChunkAccount]) -> dict[TopicPartition, int]:
    counts: dict[TopicPartition, int] = {}
    for account in accounts:
        counts[account.chunk.name] = counts.get(account.chunk.name, 0) + account.absent
    return counts


def _prove_absence(
    choice: Choice, account: ChunkAccount, logs: Mapping[TopicPartition, Range], archive: str
) -> ChunkAccount:
    """Absence is proven for offsets that the log still reaches; outside of it they may be lost."""
    there = logs[TopicPartition(account.topic, account.partition)]
    proven = account.losing(there)
    if proven is not account and choice.lost_offsets != "record_loss":
        raise PolicyError(
            f"{proven.lost - account.lost} offsets of {account.chunk} were not there to be read, and Kafka has only "
            f"{there} of that log now: they may have held records. To go on and have them shown as lost for "
            f"ever: {choose(archive, 'lost_offsets', 'record_loss')} (policies.lost_offsets: fail)"
        )
    return proven


def _there(item: ObjectEntry, store: Store) -> ObjectEntry | None:
    """The entry, with the ETag that the store gives the object now; None when that is not what the entry says."""
    found = compare(store, item.key, item.bytes, item.checksum, item.etag)
    return item.model_copy(update={"etag": found.stat.etag}) if found.same and found.stat else None


def _replay(plan: Plan, stored: Manifest, results: Sequence[ChunkResult], store: Store, ledger: Ledger) -> Manifest:
    promised = {o.key: o for o in stored.stored}

    def as_promised(item: WrittenObject) -> bool:
        return item.upload.key in promised and item.upload.checksum == promised[item.upload.key].checksum

    # What is there as promised stays: completing it again would only give it another ETag under KMS.
    there = {item.key for item in stored.stored if _there(item, store)}
    again = _only(results, lambda item: as_promised(item) and item.upload.key not in there)
    abort(_only(results, lambda item: not as_promised(item) or item.upload.key in there), store)
    if again:
        _take_again(ledger, plan, stored)
    rewritten = {e.key for e in complete(again, store)}
    read = sum(as_promised(item) for result in results for item in result.objects)
    other = {item.upload.key for result in results for item in result.objects} - rewritten
    for item in stored.stored:
        if item.key not in there | rewritten:
            if by := ledger.superseded_by(plan.run):
                log.warning("run %s is left alone: %s has taken its place meanwhile", plan.run, by)
                break
            found = (
                "what was read again gives other bytes (Kafka has removed records since, or a library is another one)"
                if item.key in other
                else "Kafka does not have its records any more"
            )
            raise IntegrityError(
                f"{item.key} is missing or not what the manifest says, and {found} (expected {item.rows} from offset "
                f"{item.first_offset}). Restore it from a version or copy of the bucket; if there is none: "
                f"{repair(plan.archive, item.key)}"
            )
    log.info(
        "replayed run %s: %d of %d objects read again give the same bytes; %d were missing or damaged and are written",
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


def _take_again(ledger: Ledger, plan: Plan, stored: Manifest) -> None:
    """Whoever replaces the run takes the intent too, before it removes what it replaces."""
    before = ledger.intent(plan.run)
    _refuse_closed(before.document)
    # A repair has none before its first replay.
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
    _take(ledger, known.model_copy(update={"attempt": known.attempt + bool(before.document)}), before)


def _only(results: Sequence[ChunkResult], wanted: Callable[[WrittenObject], bool]) -> list[ChunkResult]:
    return [replace(result, objects=tuple(filter(wanted, result.objects))) for result in results]

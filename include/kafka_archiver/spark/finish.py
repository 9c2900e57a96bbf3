"""Finish: what the driver does once every chunk has been written: make the objects visible, then the manifest.

Write order: intent.json (which keys may appear), the objects, manifest.json. A crash between any two leaves keys that
the intent names, and the next attempt writes the same keys again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Self

from kafka_archiver.advice import choose
from kafka_archiver.errors import IntegrityError, PolicyError
from kafka_archiver.keys import split_object_key
from kafka_archiver.ledger import Ledger
from kafka_archiver.manifest import ChunkAccount, Intent, Manifest, ObjectEntry
from kafka_archiver.plan import BadRecord, Plan
from kafka_archiver.ranges import Range, TopicPartition, merge, subtract
from kafka_archiver.store import Store
from kafka_archiver.writer.commit import abort, complete
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
        return type(self)(**{**known, **({"lost_offsets": "fail"} if plan.supersedes else {})})


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
    """
    stored = ledger.manifest(plan.run) or stored
    if stored is not None:
        return _replay(plan, stored, results, store)
    found = {result.chunk: result.account for result in results}
    accounts = [
        _prove_absence(choice, found.get(chunk) or ChunkAccount.nothing_there(chunk), logs, plan.archive)
        for chunk in plan.chunks()
    ]
    if plan.supersedes:
        _refuse_fewer(plan, accounts, ledger.manifest(plan.supersedes))
    before = ledger.intent(plan.run) or Intent(archive=plan.archive, run=plan.run, keys=())
    kept = {account.chunk: _whole(account, before, store) for account in accounts if account.lost}
    adopted = {chunk: some for chunk, some in kept.items() if some}
    accounts = [adopted[a.chunk][0] if a.chunk in adopted else a for a in accounts]
    _refuse_to_lose(accounts, before.keys, store)
    abort([r for r in results if r.chunk in adopted], store)
    results = [r for r in results if r.chunk not in adopted]
    entries = [entry for _, some in adopted.values() for entry in some]
    written = {o.upload.key for result in results for o in result.objects} | {entry.key for entry in entries}
    stale = set(before.keys) - written
    ledger.put_intent(
        Intent(
            archive=plan.archive,
            run=plan.run,
            keys=tuple(sorted(written | stale)),
            objects=(*entries, *(o.entry(o.upload.checksum) for result in results for o in result.objects)),
            chunks=tuple(accounts),
        )
    )
    entries += complete(results, store)
    for key in sorted(stale):
        log.info("%s: an earlier attempt wrote it, this one has no records for it (compacted since): removed", key)
        store.delete(key)
    manifest = Manifest.of(plan, entries, accounts, asdict(choice))
    first = ledger.create_manifest(manifest)
    if first != manifest:
        log.warning("run %s: another attempt wrote the manifest in the meantime; that one counts", plan.run)
    return first


def _whole(account: ChunkAccount, before: Intent, store: Store) -> tuple[ChunkAccount, tuple[ObjectEntry, ...]] | None:
    """What an earlier attempt has of a chunk that Kafka has not all of any more, if all of its objects are there."""
    earlier = next((a for a in before.chunks if a.chunk == account.chunk), None)
    if earlier is None or earlier.lost >= account.lost:
        return None
    place = (account.topic, account.partition, account.start)
    entries = tuple(o for o in before.objects if (o.topic, o.partition, o.chunk_start) == place)
    if not all(_is_there(entry, store) for entry in entries):
        return None
    log.info("%s: an earlier attempt wrote all of it before Kafka removed some: kept", account.chunk)
    return earlier, entries


def _refuse_to_lose(accounts: Sequence[ChunkAccount], earlier: Sequence[str], store: Store) -> None:
    """An object of an earlier attempt may hold what Kafka has lost since: then it is neither replaced nor removed."""
    losing = {(a.topic, a.partition, a.start, a.generation) for a in accounts if a.lost}
    for key in earlier:
        place = split_object_key(key)
        if place and place[:4] in losing and store.head(key):
            raise IntegrityError(
                f"{key} was written by an earlier attempt of this run, and Kafka does not have all its records any "
                "more: writing the chunk again would lose them. Copy the object to another place, delete it here, "
                "and clear the task `archive`"
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
    absent = [Range(*r) for r in account.absent_ranges]
    unproven = [gone for r in absent for gone in subtract(r, [there])]
    if not unproven:
        return account
    count = sum(r.size for r in unproven)
    if choice.lost_offsets != "record_loss":
        raise PolicyError(
            f"{count} offsets of {account.chunk} were not there to be read, and Kafka has only {there} of that log "
            "now: they may have held records. To go on and have them shown as lost for "
            f"ever: {choose(archive, 'lost_offsets', 'record_loss')} (policies.lost_offsets: fail)"
        )
    proven = [left for r in absent for left in subtract(r, unproven)]
    return account.model_copy(
        update={
            "absent": account.absent - count,
            "lost": account.lost + count,
            "absent_ranges": tuple(tuple(r) for r in proven),
            "lost_ranges": tuple(tuple(r) for r in merge(unproven)),
        }
    )


def _is_there(item: ObjectEntry, store: Store) -> bool:
    stat = store.head(item.key)
    return stat is not None and (stat.size, stat.etag) == (item.bytes, item.etag)


def _replay(plan: Plan, stored: Manifest, results: Sequence[ChunkResult], store: Store) -> Manifest:
    promised = {o.key: o for o in stored.stored}

    def as_promised(item: WrittenObject) -> bool:
        return item.upload.key in promised and item.upload.checksum == promised[item.upload.key].checksum

    # What is there as promised stays: completing it again would only give it another ETag under KMS.
    there = {item.key for item in stored.stored if _is_there(item, store)}
    again = _only(results, lambda item: as_promised(item) and item.upload.key not in there)
    abort(_only(results, lambda item: not as_promised(item) or item.upload.key in there), store)
    rewritten = {e.key for e in complete(again, store)}
    read = sum(as_promised(item) for result in results for item in result.objects)
    for item in stored.stored:
        if item.key not in there | rewritten:
            raise IntegrityError(
                f"{item.key} is missing or not what the manifest says, and Kafka does not have its records any more "
                f"(expected {item.rows} from offset {item.first_offset}); restore it from a version or copy of the "
                "bucket"
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


def _only(results: Sequence[ChunkResult], wanted: Callable[[WrittenObject], bool]) -> list[ChunkResult]:
    return [replace(result, objects=tuple(filter(wanted, result.objects))) for result in results]

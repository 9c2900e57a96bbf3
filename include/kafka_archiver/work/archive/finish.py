"""Finish: the driver's part once every chunk is written: make the objects visible, then write the manifest."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_archiver.ledger.ledger import Ledger
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import choose, clean, go_on, rebuild_with_fewer
from kafka_archiver.messages.errors import IntegrityError, PolicyError
from kafka_archiver.messages.policies import ReadPolicies
from kafka_archiver.model.chunk_accounts import ChunkAccount
from kafka_archiver.model.layouts.registry import place_in
from kafka_archiver.model.manifest import Intent, Manifest, ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.replayed import manifest_of
from kafka_archiver.model.set_aside import SetAside
from kafka_archiver.records.writer.finish_uploads import abort
from kafka_archiver.records.writer.result import ChunkResult
from kafka_archiver.store import Store
from kafka_archiver.values.gaps import beside, count, merged, unpack
from kafka_archiver.values.ranges import Range, TopicPartition
from kafka_archiver.work.archive.publish import publish, refuse_closed_intent, remove_stale
from kafka_archiver.work.archive.replay import matching_entry, replay

if TYPE_CHECKING:
    from kafka_archiver.values.gaps import Rows

log = logging.getLogger(__name__)
_FATES_LEFT_OUT = {"dead_lettered": "dead letters", "filtered": "filtered"}


def finish_run(
    plan: Plan,
    stored: Manifest | None,
    results: Sequence[ChunkResult],
    logs: Mapping[TopicPartition, Range],
    policies: ReadPolicies,
    store: Store,
    ledger: Ledger,
    aside: SetAside | None = None,
) -> Manifest:
    """Complete the run's objects and write its manifest; a run that has a manifest already is replayed against it.

    :param stored: the run's manifest when the reading began.
    :param logs: what each partition's log has now, after everything was read.
    :param aside: what the run leaves out.
    :raises PolicyError: offsets may have been lost while they were read.
    :raises IntegrityError: neither a replay nor the store has an object of the manifest; or a rebuild has fewer records
        than the run that it would replace.
    :raises TransientError: another attempt has begun to complete the run.
    """
    intent = ledger.intent(plan.run)
    stored = ledger.manifest(plan.run) or stored or intended_manifest(plan, intent.document, ledger)
    if stored is not None:
        return replay(plan, stored, results, store, ledger)
    refuse_closed_intent(intent.document)
    account_of = {result.chunk: result.account for result in results}
    read = [account_of.get(chunk) or ChunkAccount.nothing_there(chunk) for chunk in plan.chunks()]
    read = [aside.losing(account) for account in read] if aside else read
    accounts = [_prove_absence(policies, account, logs, plan.archive) for account in read]
    if plan.supersedes and not plan.takes_over:
        _refuse_fewer(plan, accounts, ledger.manifest(plan.supersedes))
    before = intent.document or Intent(archive=plan.archive, run=plan.run, attempt=1, keys=())
    kept = {account.chunk: _complete_before(account, before, store) for account in accounts if account.lost}
    adopted = {chunk: some for chunk, some in kept.items() if some}
    # A person has decided about offsets that were given up.
    gone = [a for a, known in zip(accounts, read, strict=True) if a.lost > known.lost and a.chunk not in adopted]
    _refuse_to_lose(plan, gone, before.keys, store)
    accounts = [adopted[a.chunk][0] if a.chunk in adopted else a for a in accounts]
    abort([r for r in results if r.chunk in adopted], store)
    results = [r for r in results if r.chunk not in adopted]
    entries = [entry for _, some in adopted.values() for entry in some]
    done = publish(plan, results, accounts, policies, intent, store, ledger, entries)
    return ledger.create_manifest(done.manifest(plan))


def intended_manifest(plan: Plan, intent: Intent | None, ledger: Ledger) -> Manifest | None:
    """Return the manifest of an attempt that made everything visible, and died before it wrote the manifest."""
    if intent is None or not intent.done or plan.origin == "repair":
        return None
    log.info("run %s: attempt %d wrote all objects but no manifest: writing it now", plan.run, intent.attempt)
    # It may have died before it removed these.
    remove_stale(intent, ledger.store)
    before = ledger.sound_manifest(plan.supersedes or "") if plan.letters else None
    return ledger.create_manifest(manifest_of(plan, before, intent) if before else intent.manifest(plan))


def _complete_before(
    account: ChunkAccount, before: Intent, store: Store
) -> tuple[ChunkAccount, tuple[ObjectEntry, ...]] | None:
    """Return an earlier attempt's account and objects of a chunk that Kafka no longer has in full, if all objects
    exist.
    """
    earlier = next((a for a in before.chunks if a.chunk == account.chunk), None)
    if earlier is None or earlier.lost >= account.lost:
        return None
    entries = [o for o in before.objects if o.place == account.place]
    stored_entries = [stored_entry for entry in entries if (stored_entry := matching_entry(entry, store))]
    if len(stored_entries) < len(entries):
        return None
    log.info("%s: keeping the objects of an earlier attempt, which read it before Kafka removed records", account)
    return earlier, tuple(stored_entries)


def _refuse_to_lose(plan: Plan, gone: Sequence[ChunkAccount], earlier: Sequence[str], store: Store) -> None:
    """Do not replace or remove an object of an earlier attempt if it may hold records that Kafka has lost since.

    :param gone: the accounts of chunks of which Kafka has lost records.
    """
    losing = {(a.topic, a.partition, a.start, a.generation) for a in gone}
    for key in earlier:
        place = place_in(plan.settings, key)
        if place and place[:4] in losing and store.head(key):
            raise IntegrityError(
                f"{key} was written by an earlier attempt of this run, and Kafka no longer has all its records: "
                "writing the chunk again would lose records.",
                *advise("Copy the object to another place and delete it here; then ", go_on(plan.archive, plan.run)),
            )


def _refuse_fewer(plan: Plan, accounts: Sequence[ChunkAccount], old: Manifest | None) -> None:
    """Refuse a rebuild with fewer records than the archive has: Kafka may have compacted since."""
    before = _missing_offsets(old.chunks if old else ())
    for name, rows in sorted(_missing_offsets(accounts).items()):
        # Offsets are compared, not counts: records of aborted transactions may have taken the place of missing ones.
        if fewer := beside(rows, before[name]) if name in before else count(rows):
            raise IntegrityError(
                f"run {plan.supersedes} cannot be rebuilt: it lacks {fewer} records of {name} that were archived "
                "(compacted since, given up, or of aborted transactions, which `source.isolation` leaves out now). The "
                "stored objects stay as they are.",
                *advise(clean(plan.archive), " removes the attempt"),
            )
    if plan.refuses_fewer and old:
        _refuse_fewer_archived(plan, accounts, old)


def _refuse_fewer_archived(plan: Plan, accounts: Sequence[ChunkAccount], old: Manifest) -> None:
    """Refuse a rebuild that would take archived records out of the archive: today's settings filter or reject them."""
    counts = {fate: sum(getattr(account, fate) for account in accounts) for fate in ("archived", *_FATES_LEFT_OUT)}
    if counts["archived"] >= old.account["archived"]:
        return
    more = [
        f"{counts[fate] - old.account[fate]:,} more {wording}"
        for fate, wording in _FATES_LEFT_OUT.items()
        if counts[fate] > old.account[fate]
    ]
    fewer = rebuild_with_fewer(plan.archive, plan.supersedes or "")
    raise IntegrityError(
        f"run {plan.supersedes} is not rebuilt: {counts['archived']:,} records would be archived in the place of "
        f"{old.account['archived']:,}{' (' if more else ''}{', '.join(more)}{')' if more else ''}. The stored "
        "objects stay as they are.",
        *advise(
            "Correct the settings, or, if fewer are right: ", fewer, "; ", clean(plan.archive), " removes the attempt"
        ),
    )


def _missing_offsets(accounts: Sequence[ChunkAccount]) -> "dict[TopicPartition, Rows]":
    """Return the offsets of each partition that are absent or lost, of partitions that have such."""
    missing: dict[TopicPartition, list[Rows]] = {}
    for account in accounts:
        if account.absent or account.lost:
            gaps = (account.absent_ranges, account.lost_ranges)
            missing.setdefault(account.name, []).extend(unpack(account.start, account.end, some) for some in gaps)
    return {name: merged(*parts) for name, parts in missing.items()}


def _prove_absence(
    policies: ReadPolicies, account: ChunkAccount, logs: Mapping[TopicPartition, Range], archive: str
) -> ChunkAccount:
    """Count missing offsets outside of the present log as lost: absence is proved only for those inside."""
    log = logs[account.name]
    proven = account.losing(log)
    if proven is not account and policies.lost_offsets != "record_loss":
        how = advise(
            "To go on and record them as lost for ever: ",
            choose(archive, "lost_offsets", "record_loss"),
            " (policies.lost_offsets: fail)",
        )
        raise PolicyError(
            f"{proven.lost - account.lost} offsets of {account} were missing when read, and Kafka has only "
            f"{log} of that log now: they may have held records.",
            advice=how.text,
            actions=how.actions,
        )
    return proven

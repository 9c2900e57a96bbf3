"""Verify: the store has what the manifest says, and the manifest accounts for every offset of the plan."""

import logging
from collections.abc import Iterator, Sequence

from kafka_archiver.context.archive_context import Context
from kafka_archiver.context.run_documents import effective_runs, written_documents
from kafka_archiver.messages.actions import advise
from kafka_archiver.messages.advice import go_on, plan_anew, repair
from kafka_archiver.messages.errors import IntegrityError, PermanentError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.layouts.registry import place_in
from kafka_archiver.model.manifest import Manifest, ObjectEntry, discrepancies
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.writer.finish_uploads import throw_away
from kafka_archiver.store import Store
from kafka_archiver.store.object_check import compare
from kafka_archiver.values.threads import each

log = logging.getLogger(__name__)


def verify(context: Context, runs: Sequence[str]) -> None:
    """Check each run: the account, every object's size and checksum, and that its chunks have no further objects.

    First aborts the uploads that attempts of the run have not completed.

    :raises IntegrityError: something is missing, different or unexplained; the message lists all of it.
    :raises PermanentError: one of the runs is a rebuild that was given up.
    """
    _refuse_given_up(context, runs)
    for run, commit in effective_runs(context, runs):
        plan, manifest = written_documents(context, run)
        throw_away(context.store, context.ledger.written_as(plan))
        faults = [
            *discrepancies(plan, manifest),
            *_damaged_objects(context.store, manifest),
            *_unexplained_objects(context.store, plan, manifest),
        ]
        if faults and any(True for _ in effective_runs(context, [run])):
            again = repair(plan.archive) if commit else go_on(plan.archive, plan.run)
            more = f"\n… and {len(faults) - 20} more" if len(faults) > 20 else ""
            raise IntegrityError(
                f"run {run} of archive {plan.archive} is not what its manifest says:\n" + "\n".join(faults[:20]) + more,
                *advise("To write it again: ", again),
            )
        account = ", ".join(f"{count:,} {fate}" for fate, count in manifest.account.items() if count)
        log.info(
            "run %s verified: %s offsets planned: %s; %s objects, %s bytes, each there with its checksum",
            run,
            f"{sum(manifest.account.values()):,}",
            account or "nothing",
            f"{len(manifest.objects):,}",
            f"{sum(o.bytes for o in manifest.objects):,}",
        )


def _refuse_given_up(context: Context, runs: Sequence[str]) -> None:
    """Fail for a given-up rebuild, so that its DAG run does not succeed."""
    for run in runs:
        commit = context.ledger.commit(run)
        plan = context.ledger.plan(run) if commit and commit.outcome == "given_up" else None
        if commit and plan and not plan.takes_over:
            raise PermanentError(
                f"run {run} of archive {plan.archive} was given up by {commit.by}, and has replaced nothing.",
                *advise("To start the rebuild again: ", plan_anew(plan.archive, plan.interval.id)),
            )


def _damaged_objects(store: Store, manifest: Manifest) -> Iterator[str]:
    def check(item: ObjectEntry) -> str | None:
        comparison = compare(store, item.key, item.bytes, item.checksum, item.etag)
        if comparison.same:
            return None
        return f"{item.key}: expected {item.bytes} bytes with checksum {item.checksum}, found {comparison}"

    yield from filter(None, each(check, manifest.stored))


def _unexplained_objects(store: Store, plan: Plan, manifest: Manifest) -> Iterator[str]:
    expected = {o.key for o in manifest.stored}
    chunks = plan.places()

    def look(folder: str) -> list[str]:
        return [
            f"{foreign(stat.key, 1024)}: an object with the name of one of this run's chunks, which its manifest does "
            "not name: no attempt wrote it. Find out who put it there, and move it away; the run stops here until then"
            for stat in store.list(folder)
            if stat.key not in expected and place_in(plan.settings, stat.key) in chunks
        ]

    folders = sorted({key.rpartition("/")[0] + "/" for key in expected})
    # A folder may be in another one.
    yield from dict.fromkeys(reason for reasons in each(look, folders) for reason in reasons)

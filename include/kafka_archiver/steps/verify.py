"""Verify: what the manifest says is what the store has, and accounts for every offset of the plan."""

import logging
from collections.abc import Iterator, Sequence

from kafka_archiver.errors import IntegrityError
from kafka_archiver.keys import split_object_key
from kafka_archiver.manifest import Manifest, ObjectEntry, discrepancies
from kafka_archiver.plan import Plan
from kafka_archiver.steps.context import Context
from kafka_archiver.steps.runs import that_count, written
from kafka_archiver.store import Store
from kafka_archiver.writer.threads import each

log = logging.getLogger(__name__)
THREADS = 16


def verify(context: Context, runs: Sequence[str]) -> None:
    """Check each run: the account, every object's size and checksum, and that no chunk has an object too many.

    :raises IntegrityError: something is missing, different or unexplained; all of it is listed.
    """
    for run in that_count(context, runs):
        plan, manifest = written(context, run)
        made = context.ledger.commit(run)
        if made and made.manifest_digest != manifest.digest:
            raise IntegrityError(
                f"the manifest of run {run} of archive {context.archive.archive} was changed since it was committed: "
                f"expected digest {made.manifest_digest[:12]}, found {manifest.digest[:12]}. Restore it from a version "
                "or copy of the store; writing the run again does not change it"
            )
        found = [
            *discrepancies(plan, manifest),
            *_objects(context.store, manifest),
            *_strangers(context.store, plan, manifest),
        ]
        if found:
            more = f"\n… and {len(found) - 20} more" if len(found) > 20 else ""
            raise IntegrityError(
                f"run {run} of archive {context.archive.archive} is not what its manifest says; clear the task "
                "`archive` of this run to write it again:\n" + "\n".join(found[:20]) + more
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


def _objects(store: Store, manifest: Manifest) -> Iterator[str]:
    def check(item: ObjectEntry) -> str | None:
        stat = store.head(item.key)
        if stat is None:
            return f"{item.key}: missing; expected {item.bytes} bytes"
        if stat.size != item.bytes or stat.etag != item.etag:
            return (
                f"{item.key}: expected {item.bytes} bytes with ETag {item.etag}, "
                f"found {stat.size} bytes with ETag {stat.etag}"
            )
        return None

    yield from filter(None, each(check, manifest.stored, THREADS))


def _strangers(store: Store, plan: Plan, manifest: Manifest) -> Iterator[str]:
    expected = {o.key for o in manifest.stored}
    chunks = plan.places()
    for folder in sorted({key.rsplit("/", 1)[0] for key in expected}):
        for stat in store.list(folder + "/"):
            if stat.key not in expected and split_object_key(stat.key) in chunks:
                yield f"{stat.key}: an object of this run's chunks that its manifest does not know"

"""Completes the uploads of a run, and aborts those that killed attempts have left; in the driver. Needs no Arrow."""

import logging
from collections.abc import Collection, Iterable

from kafka_archiver.model.layouts.registry import place_in, prefixes
from kafka_archiver.model.manifest import ObjectEntry
from kafka_archiver.model.plan import Plan
from kafka_archiver.records.writer.result import ChunkResult, WrittenObject
from kafka_archiver.store.base import Store
from kafka_archiver.values.threads import each

log = logging.getLogger(__name__)


def abort_upload(store: Store, key: str, upload_id: str) -> None:
    """Abort an upload. A failure is only logged, so that it does not hide the original error."""
    try:
        store.abort_upload(key, upload_id)
    except Exception:
        log.exception("could not abort upload %s of %s; its parts stay in the store", upload_id, key)


def complete(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> list[ObjectEntry]:
    """Complete all uploads, in any order: readers trust the manifest alone. Completing an upload twice is harmless.

    :raises IntegrityError: the stored object differs from the parts that were sent.
    """

    def make_visible(written: WrittenObject) -> ObjectEntry:
        return written.entry(store.complete_upload(written.upload))

    return each(make_visible, (o for result in results for o in result.objects), threads)


def abort(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> None:
    """Abort all uploads. A failure is logged; the store's list of uploads still has such an upload."""
    uploads = (o.upload for result in results for o in result.objects)
    each(lambda upload: abort_upload(store, upload.key, upload.upload_id), uploads, threads)


def throw_away(store: Store, plan: Plan, kept: Collection[str] = ()) -> None:
    """Abort every upload of a run's objects, so that no killed or zombie attempt completes one later.

    :param kept: upload ids that stay.
    """
    places = plan.places()
    left = [
        (key, upload_id)
        for prefix in prefixes({p.topic for p in plan.partitions if p.ranges}, plan.settings)
        for key, upload_id, _ in store.list_uploads(prefix)
        if upload_id not in kept and place_in(plan.settings, key) in places
    ]
    for key, upload_id in left:
        store.abort_upload(key, upload_id)
    if left:
        log.info("aborted %d unfinished uploads of other attempts", len(left))

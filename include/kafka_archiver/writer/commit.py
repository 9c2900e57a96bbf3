"""What the driver does with the results of all chunks: make their objects visible, or throw them away."""

import logging
from collections.abc import Collection, Iterable

from kafka_archiver.keys import topic_prefix
from kafka_archiver.leftovers import place_of
from kafka_archiver.manifest import ObjectEntry
from kafka_archiver.plan import Plan
from kafka_archiver.store.base import Store
from kafka_archiver.writer.result import ChunkResult, WrittenObject
from kafka_archiver.writer.threads import each
from kafka_archiver.writer.upload import abort_upload

log = logging.getLogger(__name__)


def complete(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> list[ObjectEntry]:
    """Complete all uploads; in any order, since readers trust the manifest alone. Completing twice does no harm.

    :raises IntegrityError: the store made something else of the parts than what was sent.
    """

    def make_visible(written: WrittenObject) -> ObjectEntry:
        return written.entry(store.complete_upload(written.upload))

    return each(make_visible, (o for result in results for o in result.objects), threads)


def abort(results: Iterable[ChunkResult], store: Store, threads: int = 8) -> None:
    """Throw all uploads away. What could not be is logged, and found again by the store's list of uploads."""
    uploads = (o.upload for result in results for o in result.objects)
    each(lambda upload: abort_upload(store, upload.key, upload.upload_id), uploads, threads)


def throw_away(store: Store, plan: Plan, kept: Collection[str] = ()) -> None:
    """Abort every upload of a run's objects: what killed attempts have sent, and zombies may still complete.

    :param kept: upload ids that stay.
    """
    places = plan.places()
    left = [
        (key, upload_id)
        for topic in sorted({p.topic for p in plan.partitions if p.ranges})
        for dead_letter in (False, True)
        for key, upload_id, _ in store.list_uploads(topic_prefix(topic, dead_letter))
        if upload_id not in kept and place_of(key) in places
    ]
    for key, upload_id in left:
        store.abort_upload(key, upload_id)
    if left:
        log.info("%d unfinished uploads of other attempts thrown away", len(left))

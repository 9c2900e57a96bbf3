"""What killed attempts, zombies and rebuilds leave in a store, and which of it may be removed. Pure.

Never a leftover: what a run at work may still need, what a manifest that counts promises, and what may belong to
another archive, because archives may share a store.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from kafka_archiver.keys import Place, is_dead_letter, split_object_key, topic_prefix
from kafka_archiver.layouts.registry import layout_at
from kafka_archiver.manifest import Intent, Manifest, Outcome
from kafka_archiver.plan import Plan
from kafka_archiver.progress import Progress
from kafka_archiver.ranges import Range, TopicPartition

# upload: begun and never completed. rebuild: of a rebuild that was given up. superseded: replaced by another run.
# attempt: written by an attempt whose manifest does not count. probe: of a killed doctor.
Kind = Literal["upload", "rebuild", "superseded", "attempt", "probe"]


class Leftover(NamedTuple):
    """Something to remove: an object, or, with `upload_id`, an upload."""

    kind: Kind
    key: str
    run: str | None = None
    upload_id: str | None = None


class ListedUpload(NamedTuple):
    """A multipart upload neither completed nor aborted, as the store lists it."""

    key: str
    upload_id: str
    began: datetime


def stray_uploads(
    uploads: Iterable[ListedUpload], progress: Progress, unsettled: Iterable[Plan], before: datetime
) -> list[Leftover]:
    """Uploads of settled offsets that began before a moment: only a zombie could still send them."""
    in_use = frozenset().union(*(plan.places() for plan in unsettled))
    settled = {p.name: p for p in progress.partitions}

    def stray(upload: ListedUpload) -> bool:
        place = place_of(upload.key)
        if place is None or place in in_use or upload.began >= before:
            return False
        known = settled.get(TopicPartition(place.topic, place.partition))
        if known is None or place.generation > known.generation:
            return False
        # No run archives an earlier generation any more.
        return place.generation < known.generation or any(place.start in Range(*r) for r in known.covered)

    return [Leftover("upload", u.key, None, u.upload_id) for u in uploads if stray(u)]


def of_ended(
    plan: Plan, outcome: Outcome, manifest: Manifest | None, intent: Intent | None, superseded: Manifest | None
) -> list[Leftover]:
    """What an ended run may have left: objects that no manifest names, and objects that it replaced.

    They may be gone already. Parameters: how the run ended, and its documents; `superseded`: the manifest of the run
    that it replaced.
    """
    promised = {o.key for o in manifest.stored} if manifest and outcome == "committed" else set()
    kind: Kind = "attempt" if outcome == "committed" else "rebuild" if outcome == "given_up" else "superseded"
    keys = _own(intent.keys if intent else (), plan.places())
    found = [Leftover(kind, key, plan.run) for key in keys if key not in promised]
    if superseded and outcome == "committed" and not plan.keep_superseded:
        found += [Leftover("superseded", o.key, superseded.run) for o in superseded.stored if o.key not in promised]
    return found


def place_of(key: str) -> Place | None:
    """The place of an object, if its key is where we put such objects: another archive may be further down."""
    place = split_object_key(key)
    if place is None:
        return None
    prefix, folder = topic_prefix(place.topic, is_dead_letter(key)), key.rpartition("/")[0]
    return place if layout_at(folder.removeprefix(prefix)) else None


def _own(keys: Iterable[str], places: frozenset[Place]) -> list[str]:
    return [key for key in keys if place_of(key) in places]

"""Lists the leftovers of killed attempts, zombies and rebuilds in a store, and which of them may be removed. Pure.

Never a leftover: what a run at work may still need, what a manifest that counts promises, and what may belong to
another archive, because archives may share a store.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from kafka_archiver.model.layouts.registry import place_in, plain_place
from kafka_archiver.model.manifest import Intent, Manifest, Outcome
from kafka_archiver.model.object_keys import ObjectName
from kafka_archiver.model.plan import Plan
from kafka_archiver.model.progress import Progress
from kafka_archiver.model.settings import Settings
from kafka_archiver.values.ranges import Range, TopicPartition

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
    uploads: Iterable[ListedUpload],
    progress: Progress,
    unsettled: Sequence[Plan],
    before: datetime,
    settings: Sequence[Settings] = (),
) -> list[Leftover]:
    """Uploads of settled offsets that began before a moment: only a zombie could still send them.

    :param settings: further layouts that settled plans may have had.
    """
    in_use = frozenset().union(*(plan.places() for plan in unsettled))
    known_settings = [*(plan.settings for plan in unsettled), *settings]
    settled = {p.name: p for p in progress.partitions}

    def stray(upload: ListedUpload) -> bool:
        place = place_of(upload.key, *known_settings)
        if place is None or place in in_use or upload.began >= before:
            return False
        known = settled.get(TopicPartition(place.topic, place.partition))
        if known is None or place.generation > known.generation:
            return False
        # No run archives an earlier generation any more.
        return place.generation < known.generation or any(place.start in Range(*r) for r in known.covered)

    return [Leftover("upload", u.key, None, u.upload_id) for u in uploads if stray(u)]


def leftovers_of(
    plan: Plan, outcome: Outcome, manifest: Manifest | None, intent: Intent | None, superseded: Manifest | None
) -> list[Leftover]:
    """Return the leftovers of an ended run: objects that no manifest names, and objects that it replaced.

    They may be gone already. Parameters: how the run ended, and its documents; `superseded`: the manifest of the run
    that it replaced.
    """
    promised = {o.key for o in manifest.stored} if manifest and outcome == "committed" else set()
    kind: Kind = "attempt" if outcome == "committed" else "rebuild" if outcome == "given_up" else "superseded"
    places = plan.places()
    keys = [key for key in (intent.keys if intent else ()) if place_in(plan.settings, key) in places]
    leftovers = [Leftover(kind, key, plan.run) for key in keys if key not in promised]
    if superseded and outcome == "committed" and not plan.keep_superseded:
        leftovers += [Leftover("superseded", o.key, superseded.run) for o in superseded.stored if o.key not in promised]
    return leftovers


def place_of(key: str, *settings: Settings) -> ObjectName | None:
    """The place of an object, if its key is where we put such objects: another archive may be further down.

    :param settings: of plans that may have written it, besides `hourly`.
    """
    places = (place_in(settings_of_plan, key) for settings_of_plan in settings)
    return plain_place(key) or next(filter(None, places), None)

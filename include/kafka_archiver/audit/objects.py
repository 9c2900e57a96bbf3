"""Every object that is promised, and no other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_archiver.audit.report import Finding, error
from kafka_archiver.keys import LEDGER, split_object_key
from kafka_archiver.manifest import Manifest
from kafka_archiver.plan import Plan
from kafka_archiver.ranges import TopicPartition

UNEXPLAINED = "unexplained"
AGAIN = "clear the task `archive` of this run: it writes the object again as long as Kafka has the records"


class Stored(NamedTuple):
    """What the store says of an object, or a manifest."""

    size: int
    etag: str

    def __str__(self) -> str:
        return f"{self.size} bytes with ETag {self.etag}"


@dataclass(slots=True)
class Explained:
    """What the ledger has to say about objects.

    `promised`: by committed manifests that count, with the run. `superseded`: objects that a settled rebuild should
    have removed, with the rebuild. `keys`: may be there, since they are kept or about to go. `unfinished`: plans
    whose objects may be there.
    """

    promised: dict[str, tuple[Stored, str]] = field(default_factory=dict)
    superseded: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    unfinished: list[Plan] = field(default_factory=list)

    def promise(self, manifest: Manifest) -> Iterator[Finding]:
        """Take in a committed manifest that counts."""
        for item in manifest.stored:
            if item.key in self.promised:
                yield error(
                    "promised-twice",
                    item.key,
                    f"the object in the manifests of runs {self.promised[item.key][1]} and {manifest.run}",
                    "every object in one manifest",
                    "One of the two runs was not written by the archiver; look at both with `airflow archive show`",
                )
            self.promised[item.key] = (Stored(item.bytes, item.etag), manifest.run)


def check_objects(listed: Mapping[str, Stored], explained: Explained) -> Iterator[Finding]:
    """Compare what the store lists below the archive's topics with what the ledger says.

    :param listed: what is there, by key.
    """
    for key, (promised, run) in sorted(explained.promised.items()):
        found = listed.get(key)
        if found is None:
            yield error("object-missing", key, "nothing", f"{promised} (run {run})", f"Restore it, or {AGAIN}")
        elif found.size != promised.size:
            yield error("object-changed", key, str(found), f"{promised} (run {run})", f"Restore it, or {AGAIN}")
        elif found.etag != promised.etag:
            yield error(
                "object-rewritten",
                key,
                str(found),
                f"{promised} (run {run})",
                f"Somebody wrote it again; `--deep` tells whether with the same bytes. If not, restore it, or {AGAIN}",
            )
    for key in sorted(listed.keys() - explained.promised.keys() - explained.keys):
        if key in explained.superseded:
            yield error(
                "superseded-left",
                key,
                f"an object that run {explained.superseded[key]} has replaced",
                "nothing: the rebuild removes what it replaces once its hours are proved",
                "`airflow archive clean` removes it",
            )
        elif not any(may_have_written(plan, key) for plan in explained.unfinished):
            yield error(
                UNEXPLAINED,
                key,
                f"an object of {listed[key]} that no manifest names and no unfinished run may have written",
                "only what the ledger of an archive explains",
                "`airflow archive clean` removes what killed jobs left. Else look who put it there: readers that list "
                "the folder read it too",
            )


def may_have_written(plan: Plan, key: str) -> bool:
    """Whether an object has the name of one of the plan's chunks."""
    place = split_object_key(key)
    if place is None or place.revision != plan.revision:
        return False
    chunk = plan.chunk_of(TopicPartition(place.topic, place.partition), place.start)
    return chunk is not None and (chunk.start, chunk.generation) == (place.start, place.generation)


def of_this_store(keys: Iterable[str]) -> list[str]:
    """Without the keys of archives whose store.url is below this one's, which are known by their ledgers."""
    found = list(keys)
    inside = tuple({key[: key.index(f"/{LEDGER}/") + 1] for key in found if f"/{LEDGER}/" in key})
    return [key for key in found if not (inside and key.startswith(inside))]

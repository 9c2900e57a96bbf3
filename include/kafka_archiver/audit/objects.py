"""Every object that is promised, and no other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_archiver.audit.report import Finding, error
from kafka_archiver.keys import Place, split_object_key
from kafka_archiver.manifest import Manifest

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
    have removed, with the rebuild. `keys`, `places`: may be there, since a run is not finished or its old objects
    are kept.
    """

    promised: dict[str, tuple[Stored, str]] = field(default_factory=dict)
    superseded: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)

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
                f"Clear the task `close_hours` of the DAG run that rebuilt {explained.superseded[key]}",
            )
        elif split_object_key(key) not in explained.places:
            yield error(
                "unexplained",
                key,
                f"an object of {listed[key]} that no manifest names and no unfinished run may have written",
                "only what the ledger of an archive explains",
                "Look who put it there; readers that list the folder read it too",
            )

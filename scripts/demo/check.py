"""Whether the archive holds what it must: each record once, in the hour of its time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scripts.demo.orders import HOUR


@dataclass(frozen=True, slots=True)
class Found:
    """One line of an object. `at`: the time inside the line; `hour`: the one it is filed in; both in ms since 1970."""

    id: str
    at: int
    hour: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The ids of the records with which something is wrong."""

    missing: tuple[str, ...]
    repeated: tuple[str, ...]
    unexpected: tuple[str, ...]
    misfiled: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """A phrase each; empty when all is well."""
        kinds = {
            "missing": self.missing,
            "there more than once": self.repeated,
            "there that should not be": self.unexpected,
            "in the wrong hour": self.misfiled,
            "with another time than produced": self.changed,
        }
        return [f"{len(ids):,} records {what} (first: {ids[0]})" for what, ids in kinds.items() if ids]


def compare(expected: Mapping[str, int], found: Iterable[Found]) -> Verdict:
    """:param expected: the time of each record by id."""
    lines = list(found)
    times = Counter(line.id for line in lines)
    return Verdict(
        missing=tuple(sorted(expected.keys() - times.keys())),
        repeated=tuple(sorted(id_ for id_, count in times.items() if count > 1)),
        unexpected=tuple(sorted(times.keys() - expected.keys())),
        misfiled=tuple(line.id for line in lines if not line.hour <= expected.get(line.id, line.at) < line.hour + HOUR),
        changed=tuple(line.id for line in lines if line.at != expected.get(line.id, line.at)),
    )


def broken_claims(claims: Mapping[str, str], etags: Mapping[str, str]) -> list[str]:
    """The keys that are not among the objects, or not with the claimed ETag; an empty one claims the key alone."""
    return [key for key, etag in claims.items() if key not in etags or (etag and etags[key] != etag)]

"""Keys that the design has and this version does not."""

from collections.abc import Mapping
from typing import Any

# Known to the design, not to this version: an error that says so beats "unknown key".
PLANNED = {
    "transform", "schema_evolution", "alerts.max_age", "alerts.max_lag_records",
}  # fmt: skip
# Likewise keys with which nothing can be chosen yet. They may say what is done anyway.
ONLY: dict[str, Any] = {"source.key": {"decode": "bytes"}, "timestamp.from": "record", "store.encryption": "none"}


def unknown(where: str) -> str:
    """What to say of a key that no section has."""
    if where in ONLY:
        only = str(ONLY[where]).replace("'", "")
        return f"`{where}` can only be {only} in this version of the design; leave it out"
    if where in PLANNED:
        return f"`{where}` is part of the design but not of this version; remove it"
    return f"`{where}` is not a key of an archive; see docs/OPERATING.md for all keys"


def without_the_only_choices(content: Mapping[Any, Any]) -> dict[Any, Any]:
    """The YAML without what it says of `ONLY`, where it is right."""
    left = dict(content)
    for where, only in ONLY.items():
        section, key = where.split(".")
        within = left.get(section)
        if isinstance(within, dict) and within.get(key) == only:
            left[section] = {name: value for name, value in within.items() if name != key}
    return left

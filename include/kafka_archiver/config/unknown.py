"""Keys that the design has but this version does not."""

from collections.abc import Mapping
from typing import Any

# They get an error of their own, which is clearer than "not a key".
PLANNED: set[str] = set()
# Keys with only one choice in this version. The YAML may give that choice.
ONLY: dict[str, Any] = {}


def unknown(where: str) -> str:
    """The error for a key that no section has."""
    if where in ONLY:
        return f"`{where}` can only be {ONLY[where]} in this version of the design; leave it out"
    if where in PLANNED:
        return f"`{where}` is part of the design but not of this version; remove it"
    return f"`{where}` is not a key of an archive; see docs/reference.md for all keys"


def without_the_only_choices(content: Mapping[Any, Any]) -> dict[Any, Any]:
    """The YAML without those keys of `ONLY` that have the only choice."""
    left = dict(content)
    for where, only in ONLY.items():
        section, key = where.split(".")
        within = left.get(section)
        if isinstance(within, dict) and within.get(key) == only:
            left[section] = {name: value for name, value in within.items() if name != key}
    return left

"""The bounds of a YAML file's values: what Airflow's database, JSON and the memory of a process can hold. Pure."""

from typing import Any

# Values, with those that aliases repeat.
_MOST_VALUES = 200_000
_DEEPEST = 100
_LONGEST = 1_000_000
_LARGEST = 2**63 - 1


def require_bounded(content: Any) -> None:
    """Check everything in a document, in a time that the bounds limit.

    :raises ValueError: names the key, what was found and what was expected.
    """
    count = 0
    waiting: list[tuple[Any, tuple[str, ...]]] = [(content, ())]
    while waiting:
        value, keys = waiting.pop()
        count += 1
        if count > _MOST_VALUES:
            raise ValueError(f"expected at most {_MOST_VALUES:,} values, those counted that aliases (*name) repeat")
        if len(keys) > _DEEPEST:
            raise ValueError(f"`{'.'.join(keys[:4])}…`: expected at most {_DEEPEST} levels")
        if isinstance(value, dict):
            waiting += [(key, keys) for key in value]
            waiting += [(inner, (*keys, str(key)[:100])) for key, inner in value.items()]
        elif isinstance(value, list | tuple | set):
            waiting += [(inner, (*keys, str(place))) for place, inner in enumerate(value)]
        elif fault := _fault(value):
            raise ValueError(f"`{'.'.join(keys)}`: {fault}")


def _fault(value: object) -> str:
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "expected a number of at most 2^63 - 1"
    if not isinstance(value, str):
        return ""
    if len(value) > _LONGEST:
        return f"expected at most {_LONGEST:,} characters, found {len(value):,}"
    # Airflow's database takes neither a NUL nor half of a character.
    odd = next((character for character in value if character == "\0" or "\ud800" <= character <= "\udfff"), None)
    return f"expected text without the character U+{ord(odd):04X}, which Airflow's database cannot store" if odd else ""

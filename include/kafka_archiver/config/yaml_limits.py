"""The bounds of a YAML file, and of its values once `yaml_text` has parsed it: what Airflow's database, JSON and the
memory of a process can hold.
"""

import os
import stat
from pathlib import Path
from typing import Any

# Of a YAML file, and of each file that it names.
MOST_BYTES = 1 << 20
# Values, with those that aliases repeat.
MOST_VALUES = 200_000
DEEPEST = 100
_LONGEST = 1_000_000
_LARGEST = 2**63 - 1


def read_bounded(path: Path) -> str:
    """Read a text file, without waiting for anything.

    :raises ValueError: it is too large, or is no text, or no file at all: what was expected, and what was found.
    :raises OSError: it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        # A pipe would keep its reader waiting.
        raise ValueError("expected a file, found a device, a pipe or a folder")
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        size = max(about.st_size, len(content))
        raise ValueError(f"expected at most 1 MiB ({MOST_BYTES:,} bytes), found {size:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("expected text in UTF-8, found other bytes") from None


def require_bounded(content: Any) -> None:
    """Check everything in a document, in a time that the bounds limit.

    :raises ValueError: names the key, what was found and what was expected.
    """
    count = 0
    waiting: list[tuple[Any, tuple[str, ...]]] = [(content, ())]
    while waiting:
        value, keys = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise ValueError(f"expected at most {MOST_VALUES:,} values, those counted that aliases (*name) repeat")
        if len(keys) > DEEPEST:
            raise ValueError(f"`{'.'.join(keys[:4])}…`: expected at most {DEEPEST} levels")
        if isinstance(value, dict):
            waiting += [(key, keys) for key in value]
            waiting += [(inner, (*keys, str(key)[:100])) for key, inner in value.items()]
        elif isinstance(value, set):
            # Its order differs from process to process.
            raise ValueError(f"`{'.'.join(keys)}`: expected a list, found a set (!!set)")
        elif isinstance(value, list | tuple):
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

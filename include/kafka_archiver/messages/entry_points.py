"""Loads what another distribution adds by an entry point; the errors name the key of the YAML."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

from kafka_archiver.messages.errors import ConfigError


def load_entry_point(key: str, name: str, entries: Sequence[EntryPoint], expected: str) -> Any:
    """Return what the only entry point of a name names.

    :param key: the YAML's key, for messages. `expected`: the names that there are.
    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    if not entries:
        raise ConfigError(f"{key}: expected {expected}, found {name!r}")
    if len(entries) > 1:
        sources = " and ".join(sorted(point.value for point in entries))
        raise ConfigError(f"{key}: two distributions add {name!r}: {sources}; uninstall one of them")
    try:
        return entries[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}: {name!r} ({entries[0].value}) cannot be loaded: {error}") from error

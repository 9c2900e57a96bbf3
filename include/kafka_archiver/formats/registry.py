"""The formats by name: those of this package, and those that installed distributions add.

A distribution adds one with an entry point of the group `kafka_archiver.formats`: its name is the format's name in
the YAML, its value an object with what :class:`~kafka_archiver.formats.base.Format` has. It must be installed
wherever an object is encoded, so on the Spark executors too. It cannot replace a format of this package.
"""

from collections.abc import Iterable
from importlib.metadata import entry_points

from kafka_archiver.errors import ConfigError
from kafka_archiver.formats.avro import Avro
from kafka_archiver.formats.base import Content, Format
from kafka_archiver.formats.jsonl import JsonLines
from kafka_archiver.formats.parquet import Parquet

GROUP = "kafka_archiver.formats"
# Not entry points: an executor that got the package as a zip has no metadata of it.
_OWN: dict[str, Format] = {f.name: f for f in (JsonLines(), Avro(), Parquet())}


def names() -> tuple[str, ...]:
    """The names of all formats, sorted."""
    return tuple(sorted({*_OWN, *entry_points(group=GROUP).names}))


def get_format(name: str) -> Format:
    """The format of that name.

    :raises ConfigError: there is none, two distributions add it, or it cannot be loaded.
    """
    if name in _OWN:
        return _OWN[name]
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        raise ConfigError(f"store.format: expected {_one_of(names())}, found {name!r}")
    if len(found) > 1:
        sources = " and ".join(sorted(point.value for point in found))
        raise ConfigError(f"store.format: {name!r} is added twice, by {sources}; uninstall one of them")
    try:
        loaded: Format = found[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"store.format: {name!r} ({found[0].value}) cannot be loaded: {error}") from error
    return loaded


def check(name: str, codec: str, content: Content) -> None:
    """Whether objects can be written so.

    :raises ConfigError: no such format, or it lacks the codec or the content; the message lists what it has.
    """
    found = get_format(name)
    if codec not in found.extensions:
        raise ConfigError(f"store.codec: format {name} has {_one_of(found.extensions)}, found {codec!r}")
    if content not in found.contents:
        raise ConfigError(f"store.content: format {name} has {_one_of(found.contents)}, found {content!r}")


def _one_of(choices: Iterable[str]) -> str:
    return " | ".join(sorted(choices))

"""Things by name: those of this package, and those that other distributions add by entry points."""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Any, Generic, TypeVar

from kafka_archiver.messages.errors import ConfigError, error_in_words

Thing = TypeVar("Thing")


class Registry(Generic[Thing]):
    """The things of one kind by name. Distributions add names; they cannot replace one of the archiver's own.

    :param group: of the entry points. :param key: of the YAML, for messages.
    :param own: the archiver's own things. They are no entry points: an executor may have this package as a zip, without
        its metadata.
    :param kind: the class of each thing; None: an added one is not checked.
    """

    def __init__(self, group: str, key: str, own: Mapping[str, Thing], kind: type[Any] | None = None) -> None:
        self._group, self._key, self._own, self._kind = group, key, own, kind

    def names(self) -> tuple[str, ...]:
        """Return all names: the archiver's own in their order, then those that are added, sorted."""
        return (*self._own, *sorted({*entry_points(group=self._group).names} - {*self._own}))

    def __contains__(self, name: object) -> bool:
        # Asking for entry points takes time, and Airflow parses all archives again and again.
        return name in self._own or name in self.names()

    def get(self, name: str) -> Thing:
        """Return the thing of a name.

        :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
        """
        return self._own[name] if name in self._own else self.load(name)[0]

    def load(self, name: str) -> tuple[Thing, str]:
        """Return what an entry point names, and its place as `module:object`. Raises ConfigError as `get`."""
        points = tuple(entry_points(group=self._group, name=name))
        if not points:
            raise ConfigError(f"{self._key}: expected {' | '.join(self.names())}, found {name!r}")
        if len(points) > 1:
            sources = " and ".join(sorted(point.value for point in points))
            raise ConfigError(f"{self._key}: two distributions add {name!r}: {sources}; uninstall one of them")
        place = points[0].value
        try:
            loaded: Thing = points[0].load()
        except Exception as error:
            raise ConfigError(f"{self._key}: {name!r} ({place}) cannot be loaded: {error_in_words(error)}") from error
        if self._kind and not _is_a(loaded, self._kind):
            what = f"{type(loaded).__name__}; uninstall what adds {name!r}, or correct it"
            raise ConfigError(f"{self._key}: expected a {self._kind.__name__} at {place}, found {what}")
        return loaded, place


def imported(place: str) -> Any:
    """Import what `module:function` or `module:Class.method` names, where it is needed: it may load a library."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def _is_a(thing: object, kind: type[Any]) -> bool:
    """Return True if a thing is of a class, or is a subclass of it."""
    return issubclass(thing, kind) if isinstance(thing, type) else isinstance(thing, kind)

"""Things that other distributions add by entry points: formats, decoders, layouts, readers of the audit."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from kafka_archiver.messages.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AddedNames:
    """The entry points of one group. They add names; they cannot replace a name of the archiver's own.

    `group`: of the entry points. `key`: of the YAML, for messages.
    """

    group: str
    key: str

    def with_own(self, own: Iterable[str]) -> tuple[str, ...]:
        """Return all names: the archiver's own in their order, then those that are added, sorted."""
        names = tuple(own)
        return (*names, *sorted({*entry_points(group=self.group).names} - {*names}))

    def load(self, name: str, own: Iterable[str]) -> tuple[Any, str]:
        """Return what an entry point names, and its place as `module:object`.

        :raises ConfigError: no distribution adds the name, two do, or it cannot be loaded.
        """
        points = tuple(entry_points(group=self.group, name=name))
        if not points:
            raise ConfigError(f"{self.key}: expected {' | '.join(self.with_own(own))}, found {name!r}")
        if len(points) > 1:
            sources = " and ".join(sorted(point.value for point in points))
            raise ConfigError(f"{self.key}: two distributions add {name!r}: {sources}; uninstall one of them")
        try:
            return points[0].load(), points[0].value
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise ConfigError(f"{self.key}: {name!r} ({points[0].value}) cannot be loaded: {why}") from error

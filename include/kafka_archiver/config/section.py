"""The base of the YAML's sections."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

from kafka_archiver.messages.secrets import GIVEN
from kafka_archiver.values.yaml_values import YamlValue


class Section(YamlValue):
    """A section of the YAML; unknown keys are errors."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Hides properties, because some are secrets."""
        for name, value in super().__repr_args__():
            yield name, GIVEN if isinstance(value, dict) else value


def unknown_key(where: str, names: Collection[str] = ()) -> str:
    """Return the error for a key that no section has.

    :param names: the keys that are there.
    """
    close = get_close_matches(where.rpartition(".")[2], names, 1)
    expected = f"did you mean `{close[0]}`?" if close else f"expected one of {', '.join(sorted(names))}"
    return f"`{where}` is not a key of an archive{f'; {expected}' if names else ''}"

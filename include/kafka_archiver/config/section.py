"""The base of the YAML's sections."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from kafka_archiver.messages.secrets import GIVEN


class Section(BaseModel):
    """A section of the YAML; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Hides properties, because some are secrets."""
        for name, value in super().__repr_args__():
            yield name, GIVEN if isinstance(value, dict) else value


def unknown_key(where: str) -> str:
    """The error for a key that no section has."""
    return f"`{where}` is not a key of an archive; see docs/reference.md for all keys"

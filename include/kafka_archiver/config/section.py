"""The base of the YAML's sections."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from kafka_archiver.messages.secrets import GIVEN


class Section(BaseModel):
    """A section of the YAML; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that `true` is not taken for 1."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        types = {annotation, *get_args(annotation)}
        if isinstance(value, bool) and int in types and bool not in types:
            raise PydanticKnownError("int_type")
        return value

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

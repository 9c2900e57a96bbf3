"""The document of a job: what a task gives to a main program, as one argument that everybody may read. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.values.documents import Value

if TYPE_CHECKING:
    # Not at runtime: it imports YAML, which the driver does not need.
    from kafka_archiver.config import Archive


class JobDocument(Value, ABC):
    """The document of a job. It holds no secrets. `job`: its name in `jobs.registry`; a subclass has a default."""

    job: str

    @classmethod
    @abstractmethod
    def of(cls, archive: "Archive", runs: Sequence[str]) -> Self:
        """Return the job for some runs of an archive, with its present policies."""

    def to_argument(self) -> str:
        """Return the document as one argument: JSON in one line.

        YARN replaces doubled braces in arguments. So all braces but the outer ones, which are in strings, are escaped.
        """
        inner = self.model_dump_json()[1:-1].replace("{", "\\u007b").replace("}", "\\u007d")
        return f"{{{inner}}}"

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Self:
        """Return the inverse of `to_argument`.

        :raises ConfigError: the arguments are something else.
        """
        name = cls.model_fields["job"].default
        expected = f"expected one argument, the document of a job `{name}` as the DAG's task writes it"
        if len(arguments) != 1:
            raise ConfigError(f"{expected}; found {len(arguments)}")
        try:
            return cls.model_validate_json(arguments[0])
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()[:5])
            raise ConfigError(f"{expected}; found {faults}") from None

"""The document of a job: what a task gives to a main program, as one argument that everybody may read. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, ValidationError

from kafka_archiver.jobs.endpoints import Endpoints
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


class StoreJob(JobDocument):
    """A job on the store of an archive.

    `store`: its URL. `requests`: what requests to the store have besides, as options of the store; not written if
    none.
    """

    archive: str
    store: str
    # Pairs, because `to_argument` allows no braces within. Not written if there are none.
    requests: tuple[tuple[str, str], ...] = Field(default=(), exclude_if=lambda requests: not requests)

    @staticmethod
    def of_store(archive: "Archive") -> dict[str, Any]:
        """Return the fields of each job: the archive and its store."""
        requests = tuple(archive.store.requests.items())
        return {"archive": archive.archive, "store": archive.store.url, "requests": requests}

    def options(self, endpoints: Endpoints) -> dict[str, str]:
        """Return the options of the store. The endpoints may be a person's, who need not know of the requests'."""
        return {**endpoints.store, **dict(self.requests)}

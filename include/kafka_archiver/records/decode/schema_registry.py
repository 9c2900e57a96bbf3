"""A schema registry with Confluent's API: its configuration, and its schemas with all that they import."""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import BaseModel, Field

from kafka_archiver.messages.errors import PermanentError
from kafka_archiver.messages.foreign_text import foreign
from kafka_archiver.model.schemas import Kind, Reference, Schema, SubjectVersion
from kafka_archiver.records.decode.schema_registry_requests import TIMEOUT_SECONDS, Server

_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
# How deep schemas may import each other: far above what a producer could use.
_DEEPEST = 30
_MOST_IMPORTS = 2000


class _Level(BaseModel):
    compatibilityLevel: str  # noqa: N815 - the registry's name


class _Import(BaseModel):
    name: str
    subject: str
    version: int


class _Text(BaseModel):
    """Confluent's registry leaves out the type of Avro schemas, and references if there are none."""

    text: str = Field(alias="schema")
    kind: Kind = Field("AVRO", alias="schemaType")
    references: list[_Import] | None = None


class _Version(_Text):
    id: int
    # Of Confluent's registry, since 8.0.
    guid: str | None = None


class Registry:
    """One schema registry. Every request has a timeout."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # The imported versions that were read. A version never changes.
        self._imported: dict[tuple[str, int], Schema] = {}
        # By version, how many imports its schema has.
        self._counts: dict[tuple[str, int], int] = {}

    @classmethod
    def of(cls, properties: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> "Registry":
        """Create from properties with the names of Confluent's clients. Sends no request yet. `timeout`: seconds.

        :raises ConfigError: a property is missing, wrong or unknown.
        """
        return cls(Server.of(properties, timeout))

    @property
    def url(self) -> str:
        """The base URL of its API, without credentials."""
        return self._server.url

    def compatibility(self) -> str:
        """Return the registry's compatibility level for new versions of schemas, such as BACKWARD.

        :raises TransientError: the registry does not answer, or is not available now.
        :raises PermanentError: the registry refuses the credentials, or the server is no schema registry.
        """
        level = self._server.get("config", _Level)
        assert level, "no code for a missing resource was given"
        return level.compatibilityLevel

    def schema(self, number: int) -> Schema | None:
        """The schema with this id, also of a softly deleted version; None if it does not exist.

        Raises like `compatibility`; also a PermanentError if the registry lacks a schema that this one imports.
        """
        text = self._server.get(f"schemas/ids/{number}", _Text, _NO_SCHEMA)
        return self._complete(text, f"schema {number}") if text else None

    def versions(self, subject: str) -> list[SubjectVersion]:
        """The versions of a subject, oldest first, with those that were softly deleted; none if it does not exist.

        Raises like `schema`.
        """
        path = f"subjects/{quote(subject, safe='')}/versions"
        every = self._server.get(f"{path}?deleted=true", list[int], _NO_SUBJECT) or []
        alive = (self._server.get(path, list[int], _NO_SUBJECT) or []) if every else []
        versions = ((number, self._version(subject, number)) for number in sorted(every))
        # Apicurio lists the versions of a deleted subject, but does not have them.
        return [
            SubjectVersion(
                subject,
                n,
                version.id,
                self._complete(version, f"version {n} of subject {subject}"),
                n not in alive,
                version.guid,
            )
            for n, version in versions
            if version
        ]

    def _version(self, subject: str, number: int) -> _Version | None:
        path = f"subjects/{quote(subject, safe='')}/versions/{number}?deleted=true"
        return self._server.get(path, _Version, _NO_SUBJECT, _NO_VERSION)

    def _complete(self, text: _Text, name: str, above: tuple[tuple[str, int], ...] = ()) -> Schema:
        """The schema with everything that it imports.

        :param above: the versions that import it, the outermost first.
        """
        if len(above) > _DEEPEST:
            raise PermanentError(f"{name} of the schema registry at {self.url} is imported more than {_DEEPEST} deep")
        references = tuple(Reference(name=r.name, imported=self._import(r, name, above)) for r in text.references or ())
        schema = Schema(kind=text.kind, text=text.text, references=references)
        # A schema's document has each import as often as others import it.
        count = sum(1 + self._counts[r.subject, r.version] for r in text.references or ())
        if above:
            self._counts[above[-1]] = count
        if count > _MOST_IMPORTS:
            raise PermanentError(
                f"{name} of the schema registry at {self.url} has {count:,} imports, each counted as often as it is "
                f"imported; expected at most {_MOST_IMPORTS:,}"
            )
        return schema

    def _import(self, reference: _Import, by: str, above: tuple[tuple[str, int], ...]) -> Schema:
        place = reference.subject, reference.version
        name = f"version {reference.version} of subject {foreign(reference.subject)}"
        if place in above:
            raise PermanentError(f"{name} of the schema registry at {self.url} imports itself, by way of {by}")
        if place not in self._imported:
            version = self._version(*place)
            if version is None:
                raise PermanentError(
                    f"{by} of the schema registry at {self.url} imports {foreign(reference.name)} from {name}, "
                    "which the registry does not have; register it again"
                )
            self._imported[place] = self._complete(version, name, (*above, place))
        return self._imported[place]

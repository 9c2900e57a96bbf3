"""Registers schemas in a registry with Confluent's API, under new ids or under the ids that they had."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote

from pydantic import BaseModel

from kafka_archiver.model.schemas import Reference, Schema
from kafka_archiver.records.decode.schema_registry import Registry
from kafka_archiver.records.decode.schema_registry_requests import TIMEOUT_SECONDS, RefusedError, Server

Mode = Literal["READWRITE", "READONLY", "READONLY_OVERRIDE", "FORWARD", "IMPORT"]
_NO_SUBJECT, _NO_MODE = 40401, 40409
# A registry that has no modes says so in its own way.
_HIDDEN = frozenset({404, 405, 501})


class _Id(BaseModel):
    id: int


class _Mode(BaseModel):
    mode: Mode


class RegistryWriter:
    """A registry that is written. `registry`: the same one, to read."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.registry = Registry(server)

    @classmethod
    def of(cls, properties: Mapping[str, str], setting: str, timeout: float = TIMEOUT_SECONDS) -> "RegistryWriter":
        """Create from properties with the names of Confluent's clients. Sends no request yet.

        :param setting: what names the registry, for messages.
        :raises ConfigError: a property is missing, wrong or unknown.
        """
        return cls(Server.of(properties, timeout, setting))

    @property
    def url(self) -> str:
        """The base URL of its API, without credentials."""
        return self._server.url

    def register(self, subject: str, schema: Schema, number: int | None = None, version: int | None = None) -> int:
        """Register a schema, with everything that it imports, unless the subject has it. Returns its id.

        :param number, version: its id and its version, for a subject in IMPORT mode.
        :raises RefusedError: the schema is not compatible with the subject's, or its id is another schema's.
        """
        body = self._body(schema)
        if number is not None:
            body |= {"id": number, "version": version}
        answer = self._server.send("POST", f"subjects/{quote(subject, safe='')}/versions", _Id, body)
        assert answer, "no code for a missing resource was given"
        return answer.id

    def _body(self, schema: Schema) -> dict[str, object]:
        references = [
            {"name": reference.name, "subject": reference.name, "version": self._version_of(reference)}
            for reference in schema.references
        ]
        body: dict[str, object] = {"schema": schema.text, "schemaType": schema.kind}
        return body | {"references": references} if references else body

    def _version_of(self, reference: Reference) -> int:
        """Return the version of an import; if it has none, register it under its own name, as Confluent's serializers.

        Not again if it has one: some registries refuse that while the subject is in IMPORT mode.
        """

        def known() -> list[int]:
            versions = self.registry.versions(reference.name)
            return [v.number for v in versions if v.schema == reference.imported and not v.deleted]

        if numbers := known():
            return numbers[-1]
        self.register(reference.name, reference.imported)
        return known()[-1]

    def mode(self, subject: str) -> Mode | None:
        """Return the mode that a subject has of its own; None: it has none, or the registry has no modes at all.

        :raises RefusedError: the registry has no modes, and says so.
        """
        answer = self._server.send("GET", _mode_path(subject), _Mode, None, _NO_SUBJECT, _NO_MODE)
        return answer.mode if answer else None

    def set_mode(self, subject: str, mode: Mode | None, force: bool = False) -> None:
        """Set the mode of a subject; None: take away the one that it has of its own.

        :param force: also IMPORT for a subject that has schemas.
        :raises RefusedError: IMPORT for a subject that has schemas.
        """
        if mode is None:
            self._server.send("DELETE", _mode_path(subject), object, None, _NO_SUBJECT, _NO_MODE)
        else:
            path = _mode_path(subject) + "?force=true" * force
            self._server.send("PUT", path, _Mode, {"mode": mode})


def _mode_path(subject: str) -> str:
    return f"mode/{quote(subject, safe='')}"


def has_no_modes(error: RefusedError) -> bool:
    """Return True if a registry refuses because it knows no modes."""
    return error.code in _HIDDEN

"""Schemas as values: their text with everything it refers to, and a fingerprint that identifies them. Pure."""

import hashlib
from typing import Literal, NamedTuple, Self

from kafka_archiver.values.documents import ArchiveDocument, Value

# As Confluent's API names them.
Kind = Literal["AVRO", "JSON", "PROTOBUF"]
# Of a JSON document: what becomes of the properties that its schema does not name. The first one counts them only.
Unknown = Literal["drop", "column", "dead_letter"]


class Schema(Value):
    """One schema, complete: it can be parsed without the registry that it came from.

    `text`: Avro or JSON Schema as JSON; Protobuf as .proto text or as a base64 FileDescriptorProto.
    """

    kind: Kind
    text: str
    references: tuple["Reference", ...] = ()

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits; the same for equal text, kind and references."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:32]


class Reference(Value):
    """A schema that another one imports. `name`: as the text imports it, for example a file or a type."""

    name: str
    imported: Schema


class SubjectVersion(NamedTuple):
    """A version of a registry's subject. `number`: from 1. `deleted`: softly; records may have its id.

    `guid`: the schema's id in headers; None if the registry has none.
    """

    subject: str
    number: int
    id: int
    schema: Schema
    deleted: bool = False
    guid: str | None = None


class SchemaDocument(ArchiveDocument):
    """A schema that runs of an archive use, stored once beside the data: complete."""

    document: Literal["kafka-archiver/schema"] = "kafka-archiver/schema"
    fingerprint: str
    kind: Kind
    text: str
    references: tuple[Reference, ...] = ()

    @classmethod
    def of(cls, archive: str, schema: Schema) -> Self:
        """The document of a schema."""
        return cls(
            archive=archive,
            fingerprint=schema.fingerprint,
            kind=schema.kind,
            text=schema.text,
            references=schema.references,
        )

    @property
    def content(self) -> Schema:
        return Schema(kind=self.kind, text=self.text, references=self.references)

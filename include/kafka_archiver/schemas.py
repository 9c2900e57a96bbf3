"""Schemas as values: their text with everything it refers to, and a fingerprint that identifies them. Pure."""

import hashlib
from typing import Literal

from kafka_archiver.documents import Value

# As Confluent's API names them.
Kind = Literal["AVRO", "JSON", "PROTOBUF"]


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

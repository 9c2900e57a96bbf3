"""`source.key`, `source.value` and `source.headers`: how bytes are decoded, and with which schemas."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from kafka_archiver.config.schema_files import read_schema
from kafka_archiver.config.section import Section
from kafka_archiver.model.decoders import DecoderType, decoder_type, is_decoder, names, names_from_registry
from kafka_archiver.model.schemas import Schema, Unknown

Subject = Annotated[str, Field(min_length=1)]


def _decoder_name(name: str) -> str:
    if not is_decoder(name):
        *names_before, last = map(repr, names())
        raise ValueError(f"{', '.join(names_before)} or {last}, found {name!r}")
    decoder_type(name)
    return name


def _schema(value: Any, info: ValidationInfo) -> Any:
    """The schema that the YAML gives: `infer`, a file beside the YAML, or columns or a JSON Schema in the YAML."""
    if value is None or value == "infer" or isinstance(value, Schema):
        return value
    decode = info.data.get("decode")
    kind = (decode and decoder_type(decode).kind) or "JSON"
    return read_schema(value, kind, (info.context or {}).get("folder"))


class DecoderSection(Section):
    """A decoder and its schema.

    `message`: of a Protobuf schema with several messages; else it is the first one.
    `unknown`: what becomes of properties that a JSON Schema does not name.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    decode: Annotated[str, AfterValidator(_decoder_name)] = "bytes"
    schema_: Annotated[Schema | Literal["infer"] | None, BeforeValidator(_schema), Field(alias="schema")] = None
    message: Annotated[str, Field(min_length=1)] | None = None
    unknown: Unknown | None = None

    @property
    def decoder(self) -> DecoderType:
        """The decoder, as it is declared."""
        return decoder_type(self.decode)

    @property
    def declared_schema(self) -> Schema | None:
        """The schema in the YAML, or in the file beside it."""
        return self.schema_ if isinstance(self.schema_, Schema) else None

    @property
    def infers(self) -> bool:
        """Return True if the schema is inferred from records at planning."""
        return self.schema_ == "infer"

    def has_schema(self) -> bool:
        """Return True if plans have schemas for it."""
        return self.decoder.from_registry or self.schema_ is not None

    @property
    def has_json_columns(self) -> bool:
        """Return True if columns come from a JSON Schema, or from a list of columns."""
        return self.decoder.kind == "JSON" and (self.decoder.needs_schema or self.schema_ is not None)

    @model_validator(mode="after")
    def _takes_the_schema(self) -> Self:
        if self.schema_ is not None and self.decoder.kind is None:
            raise ValueError(f"no `schema` with `decode: {self.decode}`; remove it, or choose a decoder that has one")
        if self.infers and not self.decoder.infers:
            raise ValueError(
                f"`schema: infer` with `decode: json` only; `decode: {self.decode}` needs the schema itself"
            )
        if self.unknown and not self.has_json_columns:
            raise ValueError(
                f"`unknown` with `decode: json_schema`, or `decode: json` and a `schema`, only; "
                f"`decode: {self.decode}` leaves out no properties"
            )
        if self.message and not self.decoder.has_messages:
            raise ValueError(f"`message` with `decode: protobuf` only; `decode: {self.decode}` has none")
        return self


class HeaderDecoding(DecoderSection):
    """The decoding of a header's values. They have no registry's frame."""

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if self.infers or (self.decoder.from_registry and self.declared_schema is None):
            raise ValueError(f"`schema` (a file beside the YAML) for `decode: {self.decode}` of a header")
        return self


class Decoding(DecoderSection):
    """The decoding of keys or values. `json` without a schema checks that they are JSON documents, and keeps the bytes.

    `subject`: the registry's subject is named after the topic, after the record, or after both. A topic's records may
    have other names than the registry's subjects, so `subjects` lists the records' names for these strategies.
    `schema_id`: where the schema's id is. With `header` it is in a header; a record without it has a frame.
    """

    subject: Literal["topic", "record", "topic_record"] = "topic"
    subjects: tuple[Subject, ...] = ()
    schema_id: Literal["frame", "header"] = "frame"

    def is_framed(self, registry: bool) -> bool:
        """Return True if the bytes begin with a schema's id.

        :param registry: whether the archive names a registry.
        """
        return self.decoder.from_registry and registry

    def subjects_of(self, topic: str, column: str) -> tuple[str, ...]:
        """The registry's subjects for the keys or values of a topic."""
        if self.subject == "topic":
            return (f"{topic}-{column}",)
        return tuple(f"{topic}-{name}" if self.subject == "topic_record" else name for name in self.subjects)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not self.decoder.from_registry and self.schema_id == "header":
            raise ValueError(
                f"`schema_id: header` with {', '.join(names_from_registry())} only; `decode: {self.decode}` has no ids"
            )
        if not self.decoder.from_registry and (self.subject != "topic" or self.subjects):
            raise ValueError(
                f"`subject` and `subjects` with {', '.join(names_from_registry())} only; "
                f"`decode: {self.decode}` asks no registry"
            )
        if (self.subject == "topic") == bool(self.subjects):
            raise ValueError(
                "`subjects`, the names of the records, exactly if `subject` is `record` or `topic_record`; with "
                "`subject: topic`, the default, the subjects are <topic>-key and <topic>-value"
            )
        if len(set(self.subjects)) != len(self.subjects):
            raise ValueError("each name only once in `subjects`")
        return self

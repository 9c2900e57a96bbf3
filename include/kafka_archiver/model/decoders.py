"""The decoders by name, each with what it can do: those of this package, and those of installed distributions.

A distribution adds a decoder with an entry point of the group `kafka_archiver.decoders`. The entry point's name is the
decoder's name in the YAML; its value is a :class:`DecoderType`. Install the distribution on the Spark executors too:
records are decoded there. It cannot replace a decoder of this package. Pure: no decoder's library is imported here.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from kafka_archiver.messages.entry_points import Registry
from kafka_archiver.model.schemas import Kind


@dataclass(frozen=True, slots=True)
class DecoderType:
    """A decoder as the YAML, planning and the pipeline see it: its capabilities. Nothing else asks for its name.

    `maker`: `module:function`, which makes the decoder of a `records.decode.base.DecoderInput`; it is imported where
    records are decoded. `kind`: of the schemas that it reads; None: it takes none. `columns`: when it makes typed
    columns. `needs_schema`: without one it cannot decode. `from_registry`: the schema may be a registry's; the bytes
    have its frame then. `infers`: the schema may be inferred from records. `is_json`: without a schema, values are JSON
    documents, whose bytes are checked and kept. `has_messages`: a schema has several messages, of which one is chosen.
    `decodes`: it may refuse bytes; False: it passes all of them.
    `has_fields`: a value may have fields, by which records can be filed.
    """

    name: str
    maker: str
    kind: Kind | None = None
    columns: Literal["never", "with_schema", "always"] = "with_schema"
    needs_schema: bool = False
    from_registry: bool = False
    infers: bool = False
    is_json: bool = False
    has_messages: bool = False
    decodes: bool = True
    has_fields: bool = True

    @property
    def has_columns(self) -> bool:
        """True if it makes typed columns without a schema."""
        return self.columns == "always"


_ROOM = "kafka_archiver.records.decode"
_OWN: dict[str, DecoderType] = {
    own.name: own
    for own in (
        DecoderType("bytes", f"{_ROOM}.plain:BytesDecoder", columns="never", decodes=False, has_fields=False),
        DecoderType("string", f"{_ROOM}.plain:StringDecoder", columns="always", has_fields=False),
        DecoderType("json", f"{_ROOM}.json_text.decoder:make_json", "JSON", infers=True, is_json=True),
        DecoderType("avro", f"{_ROOM}.avro:make", "AVRO", needs_schema=True, from_registry=True),
        DecoderType(
            "protobuf", f"{_ROOM}.protobuf.decoder:make", "PROTOBUF",
            needs_schema=True, from_registry=True, has_messages=True,
        ),
        DecoderType(
            "json_schema", f"{_ROOM}.json_text.decoder:make_json_schema", "JSON", needs_schema=True, from_registry=True
        ),
    )
}  # fmt: skip
_REGISTRY = Registry("kafka_archiver.decoders", "decode", _OWN, DecoderType)


def names() -> tuple[str, ...]:
    """Return the names of all decoders."""
    return _REGISTRY.names()


def is_decoder(name: object) -> bool:
    """Return True if there is a decoder of that name."""
    return name in _REGISTRY


def names_from_registry() -> tuple[str, ...]:
    """Return the names of the decoders whose schemas may be a registry's."""
    return tuple(name for name in names() if decoder_type(name).from_registry)


@cache
def decoder_type(name: str) -> DecoderType:
    """Return the decoder of that name, as it is declared.

    :raises ConfigError: no distribution adds it, two do, or it cannot be loaded.
    """
    return _REGISTRY.get(name)

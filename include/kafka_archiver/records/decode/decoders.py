"""The decoders by name. A decoder's libraries are imported when one is made: planning needs only the names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.schemas import KINDS, Kind, Schema, Unknown

if TYPE_CHECKING:
    from kafka_archiver.records.decode.base import Decoder

# The kind of schema that each decoder needs. `json` may do without; then its column is the JSON text.
DECODERS: Mapping[str, Kind | None] = {"bytes": None, "string": None, "json": "JSON", **KINDS}


def decoder(
    name: str,
    *,
    schema: Schema | None,
    writers: Mapping[int, Schema],
    framed: bool,
    column: str,
    message: str = "",
    unknown: Unknown | None = "drop",
    shows_values: bool = True,
) -> Decoder:
    """A decoder.

    :param name: one of `DECODERS`.
    :param schema: the schema that the run writes.
    :param writers: by the registry's id, each schema that records may have been written with.
    :param framed: the bytes have Confluent's wire format; else they are bytes of `schema`.
    :param column: the name of the column; of a struct, the fields are columns.
    :param message: for protobuf, the name of the message; the first one of the schema if empty.
    :param unknown: of JSON documents, what becomes of properties without a column; None: as in old plans, whose columns
        are fewer, too.
    :param shows_values: whether the reasons for which a record is bad repeat parts of it.
    :raises ConfigError: the schema is missing, of another kind, not valid, or has no columns.
    """
    if name not in DECODERS:
        raise ConfigError(f"decode: expected {' | '.join(DECODERS)}, found {name!r}")
    kind = DECODERS[name]
    for version in [*([schema] if schema else []), *writers.values()]:
        if version.kind != kind:
            raise ConfigError(f"decode: {name} needs {kind or 'no'} schema, found one of kind {version.kind}")
    from kafka_archiver.records.decode.guarded import Guarded

    return Guarded(_decoder(name, schema, writers, framed, column, message, unknown), shows_values)


def _decoder(
    name: str,
    schema: Schema | None,
    writers: Mapping[int, Schema],
    framed: bool,
    column: str,
    message: str,
    unknown: Unknown | None,
) -> Decoder:
    if schema is None:
        return _without_schema(name, writers, framed, column)
    if name == "avro":
        from kafka_archiver.records.decode.avro.decoder import avro_decoder

        return avro_decoder(schema, writers, framed, column)
    if name == "protobuf":
        from kafka_archiver.records.decode.protobuf.decoder import protobuf_decoder

        return protobuf_decoder(schema, writers, framed, column, message)
    from kafka_archiver.records.decode.json_text.decoder import json_decoder, json_schema_decoder

    make = json_schema_decoder if name == "json_schema" else json_decoder
    return make(schema, writers, framed, column, unknown)


def _without_schema(name: str, writers: Mapping[int, Schema], framed: bool, column: str) -> Decoder:
    from kafka_archiver.records.decode.plain import BytesDecoder, StringDecoder

    if name == "json":
        from kafka_archiver.records.decode.json_text.decoder import json_decoder

        return json_decoder(None, writers, framed, column, None)
    if name not in ("bytes", "string"):
        raise ConfigError(f"decode: {name} needs a schema; name a registry in source.registry, or a schema's file")
    return BytesDecoder(column) if name == "bytes" else StringDecoder(column)

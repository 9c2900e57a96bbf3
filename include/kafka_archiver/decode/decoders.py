"""The decoders by name."""

from collections.abc import Mapping

from kafka_archiver.decode.base import Decoder
from kafka_archiver.errors import ConfigError
from kafka_archiver.schemas import Schema


def decoder(name: str, *, schema: Schema | None, writers: Mapping[int, Schema], framed: bool, column: str) -> Decoder:
    """A decoder.

    :param schema: the schema of its results. :param writers: by the registry's id, what framed bytes are written with.
    :param column: the name of its results' field.
    :raises ConfigError: there is no such decoder, or the schema is not one of its kind.
    """
    # Imported late: most need only one of them.
    if name == "string":
        from kafka_archiver.decode.plain import String

        return String(column)
    if name == "json":
        from kafka_archiver.decode.json_text.decoder import json_decoder

        return json_decoder(schema, writers, framed, column)
    if schema and name == "avro":
        from kafka_archiver.decode.avro.decoder import avro_decoder

        return avro_decoder(schema, writers, framed, column)
    if schema and name == "json_schema":
        from kafka_archiver.decode.json_text.decoder import json_schema_decoder

        return json_schema_decoder(schema, writers, framed, column)
    raise ConfigError(f"source.{column}.decode: {name} is part of the design but not of this version")

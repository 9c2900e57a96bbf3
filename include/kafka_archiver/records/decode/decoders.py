"""Makes decoders by their name. A decoder's libraries are imported when one is made: planning needs only the names."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.decoders import decoder_type
from kafka_archiver.model.schemas import Schema, Unknown

if TYPE_CHECKING:
    from kafka_archiver.records.decode.base import Decoder


def decoder(
    name: str,
    *,
    schema: Schema | None,
    writers: Mapping[int, Schema],
    framed: bool,
    column: str,
    message: str = "",
    unknown: Unknown | None = "drop",
    json_rules: int = 2,
    shows_values: bool = True,
) -> "Decoder":
    """Make a decoder.

    :param name: one of `model.decoders.names`. :param shows_values: whether the reasons for which a record is bad
        repeat parts of it. The others: see `records.decode.base.DecoderInput`.
    :raises ConfigError: the schema is missing, of another kind, not valid, or has no columns.
    """
    declared = decoder_type(name)
    for version in [*([schema] if schema else []), *writers.values()]:
        if version.kind != declared.kind:
            raise ConfigError(f"decode: {name} needs {declared.kind or 'no'} schema, found one of kind {version.kind}")
    if schema is None and declared.needs_schema:
        raise ConfigError(f"decode: {name} needs a schema; name a registry in source.registry, or a schema's file")
    from kafka_archiver.records.decode.base import DecoderInput
    from kafka_archiver.records.decode.undecodable import Guarded

    of = DecoderInput(schema, writers, framed, column, message, unknown, json_rules)
    return Guarded(imported(declared.maker)(of), shows_values)

"""Makes decoders by their name. A decoder's libraries are imported when one is made: planning needs only the names."""

from typing import TYPE_CHECKING

from kafka_archiver.messages.entry_points import imported
from kafka_archiver.messages.errors import ConfigError
from kafka_archiver.model.decoders import decoder_type

if TYPE_CHECKING:
    from kafka_archiver.records.decode.base import Decoder, DecoderInput


def decoder(name: str, of: "DecoderInput", shows_values: bool = True) -> "Decoder":
    """Make a decoder.

    :param name: one of `model.decoders.names`. :param shows_values: whether the reasons for which a record is bad
        repeat parts of it.
    :raises ConfigError: the schema is missing, of another kind, not valid, or has no columns.
    """
    declared = decoder_type(name)
    for version in [*([of.schema] if of.schema else []), *of.writers.values()]:
        if version.kind != declared.kind:
            raise ConfigError(f"decode: {name} needs {declared.kind or 'no'} schema, found one of kind {version.kind}")
    if of.schema is None and declared.needs_schema:
        raise ConfigError(f"decode: {name} needs a schema; name a registry in source.registry, or a schema's file")
    from kafka_archiver.records.decode.undecodable import Guarded

    return Guarded(imported(declared.maker)(of), shows_values)

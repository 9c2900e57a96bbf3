"""The decoders by name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka_archiver.decode.base import Decoder
from kafka_archiver.errors import ConfigError
from kafka_archiver.schemas import Schema


def decoder(
    name: str,
    *,
    schema: Schema | None,
    writers: Mapping[int, Schema],  # noqa: ARG001 - the decoders of the next step take it
    framed: bool,  # noqa: ARG001
    column: str,
) -> Decoder:
    """A decoder.

    :param schema: the schema of its results. :param writers: by the registry's id, what framed bytes are written with.
    :param column: the name of its results' field.
    :raises ConfigError: there is no such decoder, or the schema is not one of its kind.
    """
    kind = schema.kind if schema else "no schema"
    raise ConfigError(f"source.{column}.decode: {name} with {kind} is part of the design but not of this version")


def from_columns(columns: Sequence[Mapping[str, Any]]) -> Schema:  # noqa: ARG001
    """The schema of a list of columns.

    :raises ConfigError: a column has no name, or a type that does not exist, or is there twice.
    """
    raise ConfigError("`schema` as a list of columns is part of the design but not of this version")


def infer(values: Iterable[bytes]) -> Schema:  # noqa: ARG001
    """The schema of what these JSON documents have in common."""
    raise ConfigError("`schema: infer` is part of the design but not of this version")

"""The interface of a decoder: bytes in, one typed column out."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa


class Decoded(NamedTuple):
    """A decoded column.

    `column`: as many rows as there were, of the decoder's type; null where the bytes were null or could not be decoded.
    `reasons`: why, by row, for bytes that could not be decoded.
    """

    column: pa.Array
    reasons: Mapping[int, str]


class Decoder(Protocol):
    """Decodes a column of bytes.

    A row's result depends on that row's bytes alone: each attempt cuts the batches differently.

    Fields carry what Arrow cannot say in their metadata, for the encoders: `doc` (documentation), `avro.name` (the full
    name of a record, an enum or a fixed) and `avro.symbols` (a JSON list of an enum's symbols).
    """

    @property
    def field(self) -> pa.Field:
        """Name, type and metadata of the result. A struct type: its fields become columns. It is always nullable."""

    def decode(self, data: pa.Array) -> Decoded:
        """Decode binary or large_binary bytes."""

"""The interface of a decoder: bytes in, one typed column out."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from kafka_archiver.model.schemas import Schema, Unknown
from kafka_archiver.records.vectors import ByteArray, Mask, numbers
from kafka_archiver.values.columns import Int64s


class Decoded(NamedTuple):
    """A decoded column.

    `column`: as many rows as there were, of the decoder's type; null where the bytes were null or could not be decoded.
    `reasons`: why, by row, for bytes that could not be decoded.
    `unnamed`: by row, what a document has beyond the names of its schema, as JSON text.
    """

    column: pa.Array
    reasons: Mapping[int, str]
    unnamed: Mapping[int, str] = MappingProxyType({})


def renumbered(texts: Mapping[int, str], rows: Sequence[int] | Int64s) -> dict[int, str]:
    """Return the texts by the rows of a longer column. `rows`: of each row, its number there."""
    return {int(rows[row]): text for row, text in texts.items()}


def one_after_the_other(parts: Sequence[Decoded]) -> Decoded:
    """Return one column of several, whose rows follow each other."""
    starts = accumulate((len(part.column) for part in parts), initial=0)
    rows = [range(start, start + len(part.column)) for start, part in zip(starts, parts, strict=False)]
    reasons, unnamed = dict[int, str](), dict[int, str]()
    for part, places in zip(parts, rows, strict=True):
        reasons |= renumbered(part.reasons, places)
        unnamed |= renumbered(part.unnamed, places)
    return Decoded(pa.concat_arrays([part.column for part in parts]), reasons, unnamed)


def interleaved(column: pa.Array, is_other: Mask, other_rows: Decoded) -> Decoded:
    """Return the rows of a column and other ones, each in its place. `is_other`: of each row, whether it is one."""
    places = np.where(is_other, len(column) + np.cumsum(is_other), np.cumsum(~is_other)) - 1
    rows = np.flatnonzero(is_other)
    whole = pa.concat_arrays([column, other_rows.column]).take(numbers(places))
    return Decoded(whole, renumbered(other_rows.reasons, rows), renumbered(other_rows.unnamed, rows))


class DecoderInput(NamedTuple):
    """The ingredients of a decoder.

    `schema`: the one that the run writes. `writers`: by the registry's id, each schema that records may have been
    written with. `framed`: the bytes have Confluent's wire format; else they are bytes of `schema`. `column`: the name
    of the column; of a struct, the fields are columns. `message`: the name of the schema's message, if it has several;
    the first one if empty. `unknown`: of JSON documents, what becomes of properties without a column; None: as in old
    plans, whose columns are fewer, too. `json_rules`: see `model.settings.Settings`.
    """

    schema: Schema | None
    writers: Mapping[int, Schema] = MappingProxyType({})
    framed: bool = False
    column: str = "value"
    message: str = ""
    unknown: Unknown | None = "drop"
    json_rules: int = 2

    @property
    def required_schema(self) -> Schema:
        """The schema, of a decoder that declares that it needs one."""
        assert self.schema is not None
        return self.schema


class Decoder(Protocol):
    """Decodes a column of bytes.

    A row's result depends on that row's bytes alone: each attempt cuts the batches differently.

    Fields carry what Arrow cannot say in their metadata, for the encoders: `fields.field` has the keys.
    """

    @property
    def field(self) -> pa.Field:
        """Name, type and metadata of the result. A struct type: its fields become columns. It is always nullable."""

    def decode(self, data: pa.Array) -> Decoded:
        """Decode binary or large_binary bytes."""


@runtime_checkable
class ReadsInside(Protocol):
    """A `Read` for which nothing is copied: it takes the bytes inside of others."""

    def __call__(self, data: pa.Array, /) -> Decoded:
        """Decode whole values."""

    def read(self, data: ByteArray, starts: Int64s, ends: Int64s) -> Decoded:
        """Decode what is between each start and end. None is null."""


# Decodes the bytes of one writer's schema, without frames and without nulls.
Read: TypeAlias = Callable[[pa.Array], Decoded] | ReadsInside

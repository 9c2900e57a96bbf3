"""The interface of a decoder: bytes in, one typed column out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from kafka_archiver.messages.foreign_text import record_value, without_marks
from kafka_archiver.model.schemas import Schema, Unknown
from kafka_archiver.records.vectors import ByteArray
from kafka_archiver.values.columns import Int64s

# Takes rows (an array, or a list of what was read of them). Raises ValueError with the reason if one cannot be decoded.
Whole = Callable[[Any], pa.Array]


def _is_of_the_data(error: BaseException) -> bool:
    """Return whether a record has caused it: any error, or a panic of a native library, but no interruption.

    Nor is it a lack of memory: whose fault that is shows the record alone, in a process of its own
    (`spark/fatal_records`).
    """
    if isinstance(error, MemoryError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


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


class DecoderInput(NamedTuple):
    """The ingredients of a decoder.

    `schema`: the one that the run writes. `writers`: by the registry's id, each schema that records may have been
    written with. `framed`: the bytes have Confluent's wire format; else they are bytes of `schema`. `column`: the name
    of the column; of a struct, the fields are columns. `message`: the name of the schema's message, if it has several;
    the first one if empty. `unknown`: of JSON documents, what becomes of properties without a column; None: as in old
    plans, whose columns are fewer, too. `json_rules`: see `model.plan.Settings`.
    """

    schema: Schema | None
    writers: Mapping[int, Schema]
    framed: bool
    column: str
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

    def decode(self, data: pa.Array, ids: pa.Array | None = None) -> Decoded:
        """Decode binary or large_binary bytes.

        :param ids: the id of each row's schema (integers), where it came beside the bytes, in a header: these bytes
            have no frame. Null: the bytes have the frame themselves.
        """


@runtime_checkable
class ReadsInside(Protocol):
    """A `Read` for which nothing is copied: it takes the bytes inside of others."""

    def __call__(self, data: pa.Array, /) -> Decoded:
        """Decode whole values."""

    def read(self, data: ByteArray, starts: Int64s, ends: Int64s) -> Decoded:
        """Decode what is between each start and end. None is null."""


# Decodes the bytes of one writer's schema, without frames and without nulls.
Read: TypeAlias = Callable[[pa.Array], Decoded] | ReadsInside


def decode_in_halves(data: Any, decode: Whole, kind: pa.DataType) -> Decoded:
    """Decode all rows; on an error each half, down to the rows that are bad.

    :param kind: the type of what `decode` returns.
    """
    reasons: dict[int, str] = {}
    pieces = list(_pieces(data, decode, kind, 0, reasons))
    return Decoded(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces or [pa.nulls(0, kind)]), reasons)


def _pieces(data: Any, decode: Whole, kind: pa.DataType, start: int, reasons: dict[int, str]) -> Iterator[pa.Array]:
    if not len(data):
        return
    try:
        yield decode(data)
        return
    except ValueError as error:
        if len(data) == 1:
            reasons[start] = str(error)
            yield pa.nulls(1, kind)
            return
    middle = len(data) // 2
    yield from _pieces(data[:middle], decode, kind, start, reasons)
    yield from _pieces(data[middle:], decode, kind, start + middle, reasons)


class Guarded:
    """A decoder that refuses a record, whatever happens when it decodes it: nobody else's record stops an archive.

    A batch that fails is decoded in halves, down to the records at fault.

    :param shows_values: whether reasons repeat parts of records.
    """

    def __init__(self, decoder: Decoder, shows_values: bool = True) -> None:
        self._decoder, self.field, self._shows_values = decoder, decoder.field, shows_values

    def decode(self, data: pa.Array, ids: pa.Array | None = None) -> Decoded:
        """See `Decoder.decode`."""
        decoded = self._decode(data, ids)
        if not decoded.reasons:
            return decoded
        reasons = {row: without_marks(reason, self._shows_values) for row, reason in decoded.reasons.items()}
        return decoded._replace(reasons=reasons)

    def _decode(self, data: pa.Array, ids: pa.Array | None) -> Decoded:
        try:
            return self._decoder.decode(data, ids)
        except BaseException as error:
            if not _is_of_the_data(error) or not len(data):
                raise
            if len(data) == 1:
                reason = f"the decoder failed: {type(error).__name__}: {record_value(str(error))}"
                return Decoded(pa.nulls(1, self.field.type), {0: reason})
        middle = len(data) // 2
        parts = [
            (range(start, end), self._decode(data[start:end], None if ids is None else ids[start:end]))
            for start, end in ((0, middle), (middle, len(data)))
        ]
        return Decoded(
            pa.concat_arrays([part.column for _, part in parts]),
            {row: text for rows, part in parts for row, text in renumbered(part.reasons, rows).items()},
            {row: text for rows, part in parts for row, text in renumbered(part.unnamed, rows).items()},
        )

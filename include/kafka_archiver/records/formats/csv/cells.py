"""The columns of a CSV file, the text of their values, and the way back."""

from base64 import b64decode
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.records.formats.base import VALUE, Rejections
from kafka_archiver.records.formats.jsonl.objects import column, headers
from kafka_archiver.records.formats.jsonl.records import bytes_of
from kafka_archiver.records.formats.jsonl.typed_reader import value_of
from kafka_archiver.records.formats.shared import texts
from kafka_archiver.records.formats.shared.plain_types import bare
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.records.formats.shared.utf8 import is_binary, not_utf8
from kafka_archiver.records.vectors import Piece, joined, large_binaries, spread, text_of, valid, wrapped

_NOT_TEXT = (
    "the value is not UTF-8, so it cannot be text of a CSV file; set `store.content: record`, which has base64 for it, "
    "or another `store.format`"
)


class Style(NamedTuple):
    """The quote, and the unquoted text of a null."""

    quote: bytes
    null: bytes

    def bare(self, values: pa.Array) -> list[Piece]:
        """The values without quotes."""
        return wrapped(values, b"", b"", self.null)

    def quoted(self, values: pa.Array) -> list[Piece]:
        """The values, in which quotes are doubled already, between quotes."""
        return wrapped(values, self.quote, self.quote, self.null)

    def text(self, value: bytes) -> bytes:
        """A constant between quotes."""
        return self.quote + self._twice(value) + self.quote

    def doubled(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces with each quote twice."""
        return [self._twice(piece) if isinstance(piece, bytes) else self._twice_in_each(piece) for piece in pieces]

    def _twice(self, text: bytes) -> bytes:
        return text.replace(self.quote, self.quote * 2)

    def _twice_in_each(self, values: pa.Array) -> pa.Array:
        text, ends = text_of(values)
        places = np.flatnonzero(text == self.quote[0])
        if not len(places):
            return values
        ends = ends - ends[0]
        wider = ends + np.searchsorted(places, ends)
        return large_binaries(wider, pa.py_buffer(self._twice(text.tobytes())), valid(values))


def text_only(batch: pa.RecordBatch, marks: Rejections) -> pa.RecordBatch:
    """Reject values that are not UTF-8."""
    bad = not_utf8(batch.column("value"))
    if len(bad):
        marks.reject(dict.fromkeys(batch.column("offset").take(pa.array(bad)).to_pylist(), _NOT_TEXT))
    return batch


class Cells(NamedTuple):
    """The way to write a column. UUIDs are 16 bytes in arrays.

    :param pieces: the text of each value of a column of the schema.
    :param back: the values of a column of the schema by their text.
    """

    pieces: Callable[[pa.Array, pa.Field, Style], list[Piece]]
    back: Callable[[pa.Array, pa.Field], pa.Array]


def _plain(values: pa.Array, _: pa.Field, style: Style) -> list[Piece]:
    kind = values.type
    if is_moment(kind):
        return texts.moments(values, b" ", b"", style.null)
    return style.bare(texts.decimals(values) if pa.types.is_decimal(kind) else texts.spelt(values))


def _quoted(values: pa.Array, _: pa.Field, style: Style) -> list[Piece]:
    [doubled_values] = style.doubled([values.cast(pa.large_binary())])
    return style.quoted(doubled_values)


def _headers(values: pa.Array, _: pa.Field, style: Style) -> list[Piece]:
    return [style.quote, *headers(values, style.doubled), style.quote]


def _json(values: pa.Array, field: pa.Field, style: Style) -> list[Piece]:
    present = valid(values)
    if present is None:
        return [style.quote, *column(values, field, style.doubled), style.quote]
    whole = joined(int(present.sum()), column(values.drop_null(), field, style.doubled))
    return style.quoted(spread(whole, present))


def is_moment(kind: pa.DataType) -> bool:
    """Return True if values are dates or timestamps."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _moment(text: pa.Array, field: pa.Field) -> pa.Array:
    """Dates and timestamps. Outside the years of ISO 8601, they are numbers."""
    try:
        return text.cast(field.type)
    except pa.ArrowInvalid:
        is_number = pc.fill_null(pc.match_substring_regex(text, "^-?[0-9]+$"), False)
        units = texts.units(pc.if_else(is_number, None, text).cast(field.type))
        return pc.if_else(is_number, pc.if_else(is_number, text, None).cast(units.type), units).view(field.type)


def _decoded(values: pa.Array, field: pa.Field) -> pa.Array:
    decoded_values = [None if text is None else b64decode(text, validate=True) for text in values.to_pylist()]
    return pa.array(decoded_values, field.type)


def _headers_back(values: pa.Array, field: pa.Field) -> pa.Array:
    rows = map(orjson.loads, values.to_pylist())
    header_rows = [
        [{"key": header["key"], "value": bytes_of(header, "value")} for header in headers] for headers in rows
    ]
    return pa.array(header_rows, field.type)


def _json_back(values: pa.Array, field: pa.Field) -> pa.Array:
    value = value_of(field)
    return pa.array([None if text is None else value(text) for text in values.to_pylist()], _bare(field))


def _uuid_back(values: pa.Array, field: pa.Field) -> pa.Array:
    return pa.array([None if text is None else UUID(text).bytes for text in values.to_pylist()], _bare(field))


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    return values.cast(field.type)


def _bare(field: pa.Field) -> pa.DataType:
    return bare(pa.schema([field])).field(0).type


BARE = Cells(_plain, _cast)
MOMENT = Cells(_plain, _moment)
QUOTED = Cells(_quoted, _cast)
BASE64 = Cells(lambda values, _, style: style.quoted(texts.in_base64(values)), _decoded)
IDS = Cells(lambda values, _, style: style.quoted(texts.uuids(values)), _uuid_back)
HEADERS = Cells(_headers, _headers_back)
JSON = Cells(_json, _json_back)


def cells_of(kind: pa.DataType) -> Cells:
    """The cells of decoded values."""
    if pa.types.is_nested(kind):
        return JSON
    if kind == pa.uuid():
        return IDS
    if is_binary(kind):
        return BASE64
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return QUOTED
    return MOMENT if is_moment(kind) else BARE


class CsvColumn(NamedTuple):
    """A column of the file; `source`: the field of the object's schema."""

    name: str
    source: pa.Field
    cells: Cells


def columns_of(schema: pa.Schema) -> list[CsvColumn]:
    """The columns of an object's schema. Kafka's key and value have two each."""
    if schema.equals(VALUE):
        return [CsvColumn("value", VALUE.field("value"), QUOTED)]
    columns = [CsvColumn(field.name, field, _cells(field)) for field in schema]
    raw = [field for field in schema if kafkas(field) in ("key", "value")]
    return columns + [CsvColumn(f"{field.name}_base64", field, BASE64) for field in raw]


def _cells(field: pa.Field) -> Cells:
    kafka = {"key": QUOTED, "value": QUOTED, "headers": HEADERS}
    return kafka.get(kafkas(field) or "") or cells_of(field.type)

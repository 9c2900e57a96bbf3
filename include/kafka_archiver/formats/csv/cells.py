"""The text of a column's values, and the way back."""

from base64 import b64decode
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.jsonl.objects import header_text, json_text
from kafka_archiver.formats.jsonl.records import bytes_of
from kafka_archiver.formats.jsonl.typed_reader import value_of
from kafka_archiver.formats.shared import texts
from kafka_archiver.formats.shared.plain_types import bare
from kafka_archiver.formats.shared.utf8 import is_binary


class Cells(NamedTuple):
    """How a column is written. UUIDs are 16 bytes in arrays.

    :param text: the text of each value of a column of the schema; null for null.
    :param back: the values of a column of the schema by their text.
    :param is_text: whether it is quoted.
    """

    text: Callable[[pa.Array, pa.Field], pa.Array]
    back: Callable[[pa.Array, pa.Field], pa.Array]
    is_text: bool


def _plain(values: pa.Array, _: pa.Field) -> pa.Array:
    kind = values.type
    if is_moment(kind):
        return texts.moments(values, b" ")
    return texts.decimals(values) if pa.types.is_decimal(kind) else texts.spelt(values)


def is_moment(kind: pa.DataType) -> bool:
    """Whether values are dates or timestamps."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _moment(text: pa.Array, field: pa.Field) -> pa.Array:
    """Dates and timestamps. Outside the years of ISO 8601, they are numbers."""
    try:
        return text.cast(field.type)
    except pa.ArrowInvalid:
        is_number = pc.fill_null(pc.match_substring_regex(text, "^-?[0-9]+$"), False)
        rest = texts.units(pc.if_else(is_number, None, text).cast(field.type))
        return pc.if_else(is_number, pc.if_else(is_number, text, None).cast(rest.type), rest).view(field.type)


def _decoded(values: pa.Array, field: pa.Field) -> pa.Array:
    found = [None if text is None else b64decode(text, validate=True) for text in values.to_pylist()]
    return pa.array(found, field.type)


def _headers_back(values: pa.Array, field: pa.Field) -> pa.Array:
    rows = map(orjson.loads, values.to_pylist())
    found = [[{"key": header["key"], "value": bytes_of(header, "value")} for header in headers] for headers in rows]
    return pa.array(found, field.type)


def _json_back(values: pa.Array, field: pa.Field) -> pa.Array:
    value = value_of(field)
    return pa.array([None if text is None else value(text) for text in values.to_pylist()], _bare(field))


def _uuid_back(values: pa.Array, field: pa.Field) -> pa.Array:
    return pa.array([None if text is None else UUID(text).bytes for text in values.to_pylist()], _bare(field))


def _cast(values: pa.Array, field: pa.Field) -> pa.Array:
    return values.cast(field.type)


def _bare(field: pa.Field) -> pa.DataType:
    return bare(pa.schema([field])).field(0).type


BARE = Cells(_plain, _cast, False)
MOMENT = Cells(_plain, _moment, False)
QUOTED = Cells(lambda values, _: values.cast(pa.large_binary()), _cast, True)
BASE64 = Cells(lambda values, _: texts.in_base64(values), _decoded, True)
IDS = Cells(lambda values, _: texts.uuids(values), _uuid_back, True)
HEADERS = Cells(lambda values, _: header_text(values), _headers_back, True)
JSON = Cells(json_text, _json_back, True)


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

"""The text of a column's values, and the way back."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.csv.values import is_binary, not_utf8
from kafka_archiver.formats.vectors import binaries, large_binary


class Cells(NamedTuple):
    """How a column is written.

    :param text: the text of each value; null for null.
    :param back: the values of a type by their text.
    :param is_text: whether it is quoted.
    """

    text: Callable[[pa.Array], pa.Array]
    back: Callable[[pa.Array, pa.DataType], pa.Array]
    is_text: bool


def _plain(values: pa.Array) -> pa.Array:
    if is_binary(values.type):
        return values.cast(pa.large_binary())
    if pa.types.is_timestamp(values.type) and values.type.tz:
        # Without the zone, Arrow has text for every year. The number is that of UTC.
        instants = _plain(values.cast(pa.timestamp(values.type.unit)))
        return pc.binary_join_element_wise(instants, large_binary(b"Z"), large_binary(b""))
    return values.cast(pa.large_string()).cast(pa.large_binary())


def _encoded(values: pa.Array) -> pa.Array:
    return binaries([None if value is None else b64encode(value) for value in values.to_pylist()])


def _decoded(values: pa.Array, kind: pa.DataType) -> pa.Array:
    found = [None if text is None else b64decode(text, validate=True) for text in values.to_pylist()]
    return pa.array(found, kind)


def _where_utf8(values: pa.Array, is_utf8: bool) -> pa.Array:
    """The values that are UTF-8, or the others; null in the places of the rest."""
    values = values.cast(pa.large_binary())
    mask = np.ones(len(values), bool)
    mask[not_utf8(values)] = False
    return pc.if_else(pa.array(mask == is_utf8), values, pa.nulls(len(values), pa.large_binary()))


def _other(values: pa.Array) -> pa.Array:
    others = _where_utf8(values, False)
    return others if others.null_count == len(others) else _encoded(others)


def _headers(values: pa.Array) -> pa.Array:
    if not len(values.flatten()):
        return binaries([b"[]"] * len(values))
    return binaries([orjson.dumps([_header(**header) for header in headers or ()]) for headers in values.to_pylist()])


def _header(key: str, value: bytes | None) -> dict[str, Any]:
    try:
        return {"key": key, "value": None if value is None else value.decode()}
    except UnicodeDecodeError:
        return {"key": key, "value_base64": b64encode(value or b"").decode()}


def _headers_back(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array([[_header_back(**header) for header in orjson.loads(text)] for text in values.to_pylist()], kind)


def _header_back(key: str, value: str | None = None, value_base64: str | None = None) -> dict[str, Any]:
    text = None if value is None else value.encode()
    return {"key": key, "value": text if value_base64 is None else b64decode(value_base64, validate=True)}


def _json(values: pa.Array) -> pa.Array:
    rows = values.cast(_json_type(values.type)).to_pylist(maps_as_pydicts="lossy")
    return binaries([None if row is None else orjson.dumps(row, _leaf, orjson.OPT_NON_STR_KEYS) for row in rows])


def _leaf(value: Any) -> str:
    return b64encode(value).decode()


def _json_back(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.array([None if text is None else _of_json(orjson.loads(text), kind) for text in values.to_pylist()], kind)


def _of_json(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _of_json(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_of_json(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(key, _of_json(item, kind.item_type)) for key, item in value.items()]
    if is_binary(kind):
        return b64decode(value, validate=True)
    return pa.scalar(value).cast(kind) if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) else value


def _json_type(kind: pa.DataType) -> pa.DataType:
    """A nested type with text for times and decimals. Bytes stay; they become base64."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_json_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_json_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _json_type(kind.item_type))
    return pa.string() if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) else kind


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values.cast(kind)


BARE = Cells(_plain, _cast, False)
QUOTED = Cells(_plain, _cast, True)
BASE64 = Cells(_encoded, _decoded, True)
IF_UTF8 = Cells(lambda values: _where_utf8(values, True), _cast, True)
OTHER_BASE64 = Cells(_other, _decoded, True)
HEADERS = Cells(_headers, _headers_back, True)
JSON = Cells(_json, _json_back, True)

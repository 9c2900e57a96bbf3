"""Reads the lines of decoded records that `objects` writes."""

from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, TypedDict
from uuid import UUID

import msgspec
import orjson
import pyarrow as pa

from kafka_archiver.messages.errors import IntegrityError, error_in_words
from kafka_archiver.records.formats.jsonl.objects import JSON
from kafka_archiver.records.formats.jsonl.records import bytes_of
from kafka_archiver.records.formats.shared.plain_types import bare, seen_as
from kafka_archiver.records.formats.shared.records import kafkas
from kafka_archiver.records.formats.shared.to_arrow import Back, back

_FIRST = date(1970, 1, 1).toordinal()
_EPOCH, _SECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)


def typed_of(lines: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """The records of complete lines, each ending in a newline.

    :raises IntegrityError: a line is not an object with the schema's columns.
    """
    try:
        rows = [*map(_loader(schema), lines.split(b"\n")[:-1])]
        plain = bare(schema)
        columns = [_column(rows, field, as_.type) for field, as_ in zip(schema, plain, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, schema=plain)
        batch.validate(full=True)
        return seen_as(batch, schema)
    except (ValueError, KeyError, TypeError, ArithmeticError, AttributeError, pa.ArrowException) as error:
        raise IntegrityError(f"a line is not a record of the object's columns: {error_in_words(error)}") from error


def value_of(field: pa.Field) -> Back:
    """The function that makes a value of the column, as Arrow takes it, of its JSON."""
    parse: Back = msgspec.json.Decoder(_parsed(field)).decode if _has_text(field) else orjson.loads
    change = back(field.type, leaf, _key)
    return (lambda text: change(parse(text))) if change else parse


def _column(rows: list[dict[str, Any]], field: pa.Field, kind: pa.DataType) -> pa.Array:
    kafka = kafkas(field)
    if kafka in ("key", "value"):
        return pa.array([bytes_of(row, field.name) for row in rows], kind)
    values = [row[field.name] for row in rows]
    if kafka == "headers":
        values = [[{"key": h["key"], "value": bytes_of(h, "value")} for h in headers] for headers in values]
    elif change := back(field.type, leaf, _key):
        values = [*map(change, values)]
    return pa.array(values, kind)


@cache
def _loader(schema: pa.Schema) -> Callable[[bytes], Any]:
    """The function that parses a line. Columns of JSON text stay as they are: a parser would lose digits."""
    if not any(map(_has_text, schema)):
        return orjson.loads
    columns = {name: Any for field in schema for name in (field.name, f"{field.name}_base64")}
    return msgspec.json.Decoder(_row(columns | {field.name: _parsed(field) for field in schema})).decode


def _row(columns: dict[str, Any]) -> Any:
    return TypedDict("Row", columns, total=False)  # type: ignore[operator]


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _has_text(field: pa.Field) -> bool:
    return JSON in (field.metadata or {}) or any(map(_has_text, _children(field.type)))


def _parsed(field: pa.Field) -> Any:
    """The type of a column for msgspec."""
    kind = field.type
    if JSON in (field.metadata or {}):
        return msgspec.Raw
    if not _has_text(field):
        return Any
    if pa.types.is_map(kind):
        return dict[str, _parsed(kind.item_field)] | None  # type: ignore[misc]
    if pa.types.is_struct(kind):
        return _row({child.name: _parsed(child) for child in kind}) | None
    return list[_parsed(kind.value_field)] | None  # type: ignore[misc]


def _text(raw: str | msgspec.Raw) -> str | None:
    if isinstance(raw, str):
        return raw
    text = bytes(raw).decode()
    return None if text == "null" else text


def leaf(kind: pa.DataType) -> Back | None:
    """The function that makes a value that is not nested of its JSON; None if it needs no change."""
    if kind == pa.uuid():
        return lambda text: UUID(text).bytes
    if pa.types.is_decimal(kind):
        return Decimal
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda text: b64decode(text, validate=True)
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_timestamp(kind):
        return _units
    if pa.types.is_date32(kind):
        return lambda raw: raw if isinstance(raw, int) else date.fromisoformat(raw).toordinal() - _FIRST
    if pa.types.is_time(kind):
        return lambda text: _units(f"1970-01-01T{text}")
    return None


def _units(raw: str | int) -> int:
    """A moment in units of its last digit."""
    if isinstance(raw, int):
        return raw
    whole, _, fraction = raw.removesuffix("Z").partition(".")
    seconds = (datetime.fromisoformat(whole).replace(tzinfo=UTC) - _EPOCH) // _SECOND
    return int(f"{seconds}{'0' * len(fraction)}") + int(fraction or 0)


def _key(kind: pa.DataType) -> Back | None:
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}.__getitem__
    return int if pa.types.is_integer(kind) else None

"""Lines of decoded records: one JSON object a record, a key a column.

Kafka's columns are those of `content: record`. In decoded columns numbers keep their digits, text is text, and what
JSON has no type for is a string: decimals, NaN and Infinity, bytes (base64), UUIDs, dates, times and timestamps (ISO
8601, with Z for an instant). A date or timestamp outside the years 1 to 9999 is its number. A map is an object. Columns
that a decoder has kept as JSON text (`JSON` in a field's metadata) are that JSON.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import Target
from kafka_archiver.formats.jsonl.records import bytes_field, header_fields
from kafka_archiver.formats.shared.records import held, kafkas, normalised

# In a field's metadata: `number` or `any`, a string that is JSON itself.
JSON = b"json"
# Python objects at a time, and bytes of Arrow columns.
_CELLS, _BYTES = 50_000, 1 << 20
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1000**2, "ns": 1000**3}
# The first second of the year 1, and of the year 10000.
_YEARS = (-62_135_596_800, 253_402_300_800)
_DAY = 86_400


def typed_lines(batch: pa.RecordBatch, target: Target) -> Iterator[bytes]:
    """One line a record, some records at a time."""
    columns = held(target.schema)
    for some in _some(normalised(batch, columns)):
        rows: list[dict[str, Any]] = [{} for _ in range(some.num_rows)]
        for field in target.schema:
            _add(rows, field, some, target)
        yield b"".join([orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows])


def _some(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, min(_CELLS // max(1, _leaves(batch.schema)), batch.num_rows * _BYTES // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _leaves(fields: Any) -> int:
    return sum(_leaves(f.type) if pa.types.is_struct(f.type) else 1 for f in fields)


def _add(rows: list[dict[str, Any]], field: pa.Field, batch: pa.RecordBatch, target: Target) -> None:
    name, kafka = field.name, kafkas(field)
    if kafka in ("topic", "partition"):
        for row in rows:
            row[name] = target.topic if kafka == "topic" else target.partition
    elif kafka in ("key", "value"):
        for row, value in zip(rows, batch.column(name).to_pylist(), strict=True):
            row.update(bytes_field(name, value))
    elif kafka == "headers":
        for row, headers in zip(rows, batch.column(name).to_pylist(), strict=True):
            row[name] = header_fields(headers)
    else:
        for row, value in zip(rows, json_values(batch.column(name), field), strict=True):
            row[name] = value


def json_values(values: pa.Array, field: pa.Field) -> list[Any]:
    """Each value as orjson writes it.

    :param field: by the schema; UUIDs are 16 bytes in `values`.
    """
    kind = field.type
    if pa.types.is_struct(kind):
        columns = [json_values(child, field) for field, child in zip(kind, values.flatten(), strict=True)]
        names = [field.name for field in kind]
        return _with_nulls(values, [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)])
    if pa.types.is_map(kind):
        pairs = values.cast(pa.list_(pa.struct([values.type.key_field, values.type.item_field])))
        keys, items = pairs.flatten().flatten()
        both = list(zip(map(_name, keys.to_pylist()), json_values(items, kind.item_field), strict=True))
        return _with_nulls(values, [dict(some) for some in _grouped(pairs, both)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _with_nulls(values, _grouped(values, json_values(values.flatten(), kind.value_field)))
    if pa.types.is_timestamp(kind):
        return _moments(values.cast(pa.timestamp(kind.unit, kind.tz and "UTC")), _PER_SECOND[kind.unit], 1)
    if pa.types.is_date32(kind):
        return _moments(values, 1, _DAY)
    found: list[Any] = (values.cast(pa.string()) if pa.types.is_time(kind) else values).to_pylist()
    change = _change(values, field)
    return [None if value is None else change(value) for value in found] if change else found


def _change(values: pa.Array, field: pa.Field) -> Callable[[Any], Any] | None:
    kind = field.type
    if JSON in (field.metadata or {}):
        # A line break can only be white space between tokens.
        return lambda text: orjson.Fragment(text.replace("\n", " ").replace("\r", " "))
    if kind == pa.uuid():
        return lambda value: str(UUID(bytes=value))
    if pa.types.is_decimal(kind):
        # Never with an exponent.
        return lambda value: format(value, "f")
    if pa.types.is_floating(kind) and not np.isfinite(values.fill_null(0).to_numpy()).all():
        return lambda value: value if value - value == 0 else _ODD.get(value, "NaN")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda value: b64encode(value).decode()
    return None


_ODD = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def _moments(values: pa.Array, per_second: int, seconds: int) -> list[Any]:
    """Dates and timestamps as text; as a number outside the years that ISO 8601 has.

    :param seconds: of a unit of a date; `per_second`, the units in a second of a timestamp.
    """
    numbers = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    text = pc.replace_substring(values.cast(pa.string()), " ", "T", max_replacements=1).to_pylist()
    plain = numbers.fill_null(0).to_numpy()
    first, end = (second * per_second // seconds for second in _YEARS)
    outside = np.flatnonzero((plain < first) | (plain >= end))
    for row in outside.tolist():
        text[row] = int(plain[row])
    found: list[Any] = text
    return found


def _grouped(lists: pa.Array, items: list[Any]) -> list[list[Any]]:
    """The items of each list; of a null list, none."""
    ends = accumulate(lists.value_lengths().fill_null(0).to_pylist(), initial=0)
    return [items[start:end] for start, end in pairwise(ends)]


def _with_nulls(values: pa.Array, found: list[Any]) -> list[Any]:
    if values.null_count:
        for row in np.flatnonzero(~values.is_valid().to_numpy(zero_copy_only=False)).tolist():
            found[row] = None
    return found


def _name(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)

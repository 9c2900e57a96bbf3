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
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from kafka_archiver.formats.base import PLACE, Target
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
    raw = [number for number, field in enumerate(target.schema) if kafkas(field) in ("key", "value")]
    for some in _some(normalised(batch, columns)):
        cells = [_cells(field, some, target) for field in target.schema]
        rows = [dict(zip(target.schema.names, row, strict=True)) for row in zip(*cells, strict=True)]
        if any(isinstance(cell, bytes) for number in raw for cell in cells[number]):
            rows = [_spelt(row) for row in rows]
        yield b"".join([orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows])


def _spelt(row: dict[str, Any]) -> dict[str, Any]:
    """The row with bytes that are not UTF-8 under their longer names."""
    found: dict[str, Any] = {}
    for name, cell in row.items():
        found |= bytes_field(name, cell) if isinstance(cell, bytes) else {name: cell}
    return found


def _some(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, min(_CELLS // max(1, _leaves(batch.schema)), batch.num_rows * _BYTES // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _leaves(fields: Any) -> int:
    return sum(_leaves(f.type) if pa.types.is_struct(f.type) else 1 for f in fields)


def _cells(field: pa.Field, batch: pa.RecordBatch, target: Target) -> list[Any]:
    """The cells of a column; bytes that are not UTF-8 stay bytes."""
    kafka = kafkas(field)
    if kafka in PLACE:
        return [target.topic if kafka == "topic" else target.partition] * batch.num_rows
    values = batch.column(field.name)
    if kafka in ("key", "value"):
        try:
            # The cast checks UTF-8 as a vector.
            return values.cast(pa.large_string()).to_pylist()  # type: ignore[no-any-return]
        except pa.ArrowInvalid:
            return [_text(value) for value in values.to_pylist()]
    return [*map(header_fields, values.to_pylist())] if kafka == "headers" else json_values(values, field)


def _text(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value


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
        return _moments(values.cast(pa.timestamp(kind.unit, kind.tz and "UTC")))
    if pa.types.is_date32(kind):
        return _moments(values)
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


def _moments(values: pa.Array) -> list[Any]:
    """Dates and timestamps as text; as a number outside the years that ISO 8601 has."""
    found: list[Any] = pc.replace_substring(values.cast(pa.string()), " ", "T", max_replacements=1).to_pylist()
    outside = np.flatnonzero(~in_iso_years(values))
    for row in outside.tolist():
        found[row] = units(values)[row].as_py()
    return found


def in_iso_years(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which dates or timestamps are in the years 1 to 9999, which ISO 8601 has."""
    per_second, seconds = (1, _DAY) if pa.types.is_date(values.type) else (_PER_SECOND[values.type.unit], 1)
    first, end = (second * per_second // seconds for second in _YEARS)
    numbers = units(values).fill_null(0).to_numpy()
    found: npt.NDArray[np.bool_] = (numbers >= first) & (numbers < end)
    return found


def units(moments: pa.Array) -> pa.Array:
    """Dates, times or timestamps as the numbers that Arrow has for them."""
    return moments.view(pa.int32() if moments.type.bit_width == 32 else pa.int64())


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
